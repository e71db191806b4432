/*
 * Confinement: a process gives up rights before it reads a model file. Files come from strangers;
 * if one managed to run code, that code could open, start and reach nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * The rights that a process keeps in addition to the common system calls: those to allocate memory
 * without code, read and write open descriptors and connected sockets, get a terminal's size and
 * handle signals. All zeros: one thread and nothing more.
 */
struct gguf_confinement {
    bool threads;                  /* start threads, but never processes or programs */
    bool sets_terminal;            /* change a terminal's settings, as line editors do */
    bool unmounts;                 /* call umount2(); excludes Landlock, which forbids that call */
    bool opens;                    /* open files that others may not read; excludes Landlock */
    const int *writable_directory; /* a descriptor; system_calls may create, read and remove files
                                      below it; NULL: nowhere */
    pid_t child;                   /* the only other process that it may signal; 0: none */
    const int *system_calls; /* further system calls, as SCMP_SYS() of <seccomp.h>; NULL if none */
    size_t n_system_calls;
};

/*
 * Irrevocably give up, for this thread and all that it starts:
 *   - new privileges (no_new_privs) and all capabilities; with `unmounts`, all but CAP_SYS_ADMIN
 *     and CAP_DAC_READ_SEARCH; with `opens`, all but the latter
 *   - the file system, TCP, device ioctls, abstract sockets and signals to processes outside, as
 *     far as the kernel's Landlock has them
 *   - every system call that is neither common nor named, which then fails with EPERM (seccomp)
 * Descriptors that are open remain usable. Call it while there is a single thread.
 *
 * fstat() of the C library may fail afterwards, because it is a call that can also name a path; use
 * gguf_get_file_status(). For the same reason, standard I/O treats a terminal as a file: call
 * setvbuf() before if output must be line-buffered.
 *
 * Return 0, or a negative errno with *step set to a static text that names the failed step; the
 * process is then partly confined and should end. A kernel without Landlock does not cause an
 * error. In a build with AddressSanitizer, LeakSanitizer or ThreadSanitizer, whose runtimes need
 * these rights, this does nothing and returns 0.
 */
int gguf_confine(const struct gguf_confinement *confinement, const char **step);
