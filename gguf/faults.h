/*
 * Faults on mapped files: a page that cannot be read, because the file became shorter or its disk
 * fails, raises SIGBUS in the thread that touches it.
 */
#pragma once

/*
 * Install the handler for SIGBUS, once per process. It passes faults in other memory on to the
 * handler that was there before. Returns 0 or a negative errno.
 */
int gguf_faults_catch(void);

/*
 * Call `touch(argument)`. Returns 0, or -EIO if it touched a page that cannot be read. `touch` is
 * then left in the middle, so it must hold no lock and allocate nothing. Any thread may call this;
 * calls do not nest.
 */
int gguf_faults_guard(void (*touch)(void *argument), void *argument);
