#include "contrib/runner/tokenizer/text_scan.h"

void run_scan_measure(struct run_scan *scan, size_t at, unsigned class)
{
    if (scan->run_class == class && at >= scan->run_start && at < scan->run_end)
        return;
    scan->run_class = class;
    scan->run_start = scan->run_mark = at;
    for (;;) {
        const struct run_character character = run_scan_look(scan, at);

        if (!(character.classes & class))
            break;
        at += character.n_bytes;
        if (character.classes & RUN_LINE_END)
            scan->run_mark = at;
    }
    scan->run_end = at;
}
