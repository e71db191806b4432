/*
 * The stages of a mount's life, as its log and the service manager see them. The keeper calls these
 * functions.
 */
#ifndef GGUFS_FS_STAGES_H
#define GGUFS_FS_STAGES_H

#include <stdbool.h>
#include <sys/types.h>

/* Before the model is parsed. The strings are paths and must stay valid. */
void fs_stage_loading(const char *model, const char *mountpoint);

/* The tree can be read. */
void fs_stage_mounted(void);

/*
 * Return true if SIGHUP requests a reload. In the foreground it does so for a process without a
 * terminal that has a service manager or a log to reopen; otherwise it comes from a terminal that
 * was closed, and requests an end.
 */
bool fs_stage_reloads(bool foreground);

/* Open the log again, in the server as well. */
void fs_stage_reload(pid_t server);

/* The end was requested by a signal. */
void fs_stage_stopping(int signal_number);

/* The file system was unmounted, because nobody had used it for so long. */
void fs_stage_idle(unsigned seconds);

/* The server has ended; `status` is that of wait(2). Returns the exit status. */
int fs_stage_ended(int status);

#endif
