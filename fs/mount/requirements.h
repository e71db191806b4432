/* The requirements of a mount on the system, and on the container that the process runs in. */
#pragma once

/*
 * Check that FUSE can be used: its device, the rights to mount and, for users other than root,
 * fusermount3(1). Returns an exit status, and prints what is missing if that is not EX_OK.
 */
int fs_requirements_check(void);

/* Print what may have kept the kernel from mounting, by the errno of the refusal. */
void fs_requirements_explain_refusal(int error);

/* Print why /proc did not give the path of a descriptor. Returns an exit status. */
int fs_requirements_refuse_no_path(int error);
