/* The handler for faults on mappings: faults of others go to the handler of others. */
#include <criterion/criterion.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gguf/faults.h"
#include "tests/unit/gguf/model_file.h"

TestSuite(gguf_faults);

static volatile char *page;
static sigjmp_buf foreign_exit;
static int n_foreign, foreign_code;

static void touch(void *argument)
{
    (void)*page;
}

static void on_foreign_fault(int number, siginfo_t *info, void *context)
{
    n_foreign++;
    foreign_code = info->si_code;
    siglongjmp(foreign_exit, 1);
}

static void on_plain_fault(int number)
{
    n_foreign++;
    siglongjmp(foreign_exit, 1);
}

/* A page behind the end of its file. */
static void make_bad_page(void)
{
    const int descriptor = model_file_create("", 0);

    page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, descriptor, 0);
    cr_assert_neq((void *)(uintptr_t)page, MAP_FAILED);
    close(descriptor);
}

static void expect_both(void)
{
    cr_assert_eq(gguf_faults_catch(), 0);
    cr_assert_eq(gguf_faults_catch(), 0); /* again: it must not pass faults to itself */
    for (int i = 1; i <= 3; i++) {
        cr_expect_eq(gguf_faults_guard(touch, NULL), -EIO);
        if (sigsetjmp(foreign_exit, 1) == 0)
            touch(NULL);
        cr_expect_eq(n_foreign, i);
    }
}

Test(gguf_faults, others_keep_their_handler)
{
    struct sigaction foreign = {.sa_sigaction = on_foreign_fault, .sa_flags = SA_SIGINFO};

    make_bad_page();
    sigaction(SIGBUS, &foreign, NULL);
    expect_both();
    cr_expect_eq(foreign_code, BUS_ADRERR);
}

Test(gguf_faults, others_keep_a_plain_handler)
{
    make_bad_page();
    signal(SIGBUS, on_plain_fault);
    expect_both();
}

#ifndef __SANITIZE_ADDRESS__ /* it has a handler of its own */
Test(gguf_faults, others_die_without_a_handler, .signal = SIGBUS)
{
    make_bad_page();
    cr_assert_eq(gguf_faults_catch(), 0);
    touch(NULL);
}
#endif
