/*
 * Confinement: what a process gives up before it looks at a model file. The file comes from
 * strangers; should one ever get code to run, that code finds nothing to open, start or reach.
 */
#ifndef GGUFS_GGUF_CONFINE_H
#define GGUFS_GGUF_CONFINE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * What a process needs beside the common system calls, which compute, allocate memory that holds
 * no code, read and write open descriptors and connected sockets, ask a terminal for its size and
 * handle signals. All zeros is a process with one thread that needs nothing more.
 */
struct gguf_confinement {
    bool threads;                  /* start threads; processes and programs never */
    bool unmounts;                 /* call umount2(), which leaves no Landlock: that forbids it */
    const int *writable_directory; /* a descriptor; below it, files may be made, read and removed by
                                      the system calls that are named; NULL: nowhere */
    pid_t child;                   /* the one other process that may be signalled; 0: none */
    const int *system_calls;       /* more of them, as SCMP_SYS() of <seccomp.h>; NULL if none */
    size_t n_system_calls;
};

/*
 * Give up for good, for this thread and all that it starts:
 *   - new privileges (no_new_privs) and all capabilities; CAP_SYS_ADMIN stays if `unmounts` is set
 *   - the file system, TCP, device ioctls, abstract sockets and signals to processes outside, as
 *     far as the kernel's Landlock has them
 *   - every system call that is neither common nor named, which then fails with EPERM (seccomp)
 * Descriptors that are open remain usable. Call it while there is a single thread.
 *
 * fstat() of the C library may fail afterwards, because it is a call that can also name a path; use
 * gguf_file_status(). Standard I/O takes a terminal for a file for the same reason: call setvbuf()
 * before where lines matter.
 *
 * Return 0, or a negative errno with *step set to a static text that names what failed; the
 * process is then confined in part and should end. A kernel without Landlock is no failure. In a
 * build with AddressSanitizer, LeakSanitizer or ThreadSanitizer, whose runtimes need what is given
 * up here, this does nothing and returns 0.
 */
int gguf_confine(const struct gguf_confinement *confinement, const char **step);

#endif
