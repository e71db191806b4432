#include "contrib/runner/cli/line_editor.h"

#include "contrib/runner/cli/messages.h"
#include "contrib/runner/cli/run_signals.h"
#include "contrib/runner/cli/task_files.h"

#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#define PROMPT     "> "
#define CONTINUING "  "
#define MOST_LINES 1000 /* of the history, which is in memory only */

/* Terminals put these around pasted text, after the first was asked for ("bracketed paste"). */
#define ASK_FOR_MARKS "\033[?2004h"
#define PASTE_BEGIN   "\033[200~"
#define PASTE_END     L"\033[201~"

/* Keys that libedit does not know: it would insert a part of what they send. */
static const char *const keys[][2] = {
    {"\033[1;5C", "em-next-word"}, /* Ctrl-Right */
    {"\033[1;5D", "ed-prev-word"}, /* Ctrl-Left */
    {"\033[1;3C", "em-next-word"}, /* Alt-Right */
    {"\033[1;3D", "ed-prev-word"}, /* Alt-Left */
    {"\033[5~", "ed-unassigned"},  /* Page Up */
    {"\033[6~", "ed-unassigned"},  /* Page Down */
    {"\033[2~", "ed-unassigned"},  /* Insert */
};

struct run_line_editor {
    EditLine *edit;
    History *history;
    bool is_continuing; /* after a line that ended with a backslash */
    bool is_cleared;    /* Ctrl-C ended a line that was not empty */
    unsigned columns;   /* of the terminal; 0: unknown */
};

static char *prompt(EditLine *edit)
{
    static char texts[][3] = {PROMPT, CONTINUING};
    struct run_line_editor *editor;

    el_get(edit, EL_CLIENTDATA, &editor);
    return texts[editor->is_continuing];
}

/* Time to wait for a key before checking for Ctrl-C, which another thread may have taken. */
#define PAUSE_MS 100

static volatile sig_atomic_t is_continued;

static void on_continue(int number)
{
    is_continued = 1;
}

static unsigned count_columns(void)
{
    struct winsize size;

    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* Return the number of rows that the line has before the cursor, with the prompt. */
static unsigned count_rows(EditLine *edit, unsigned columns)
{
    const LineInfoW *info = el_wline(edit);
    unsigned row = 0, column = (unsigned)strlen(PROMPT);

    for (const wchar_t *c = info->buffer; c < info->cursor; c++) {
        const int width = *c == L'\t' ? 8 - (int)(column % 8) : wcwidth(*c);

        column += width > 0 ? (unsigned)width : 0;
        if (*c == L'\n' || column > columns) {
            row++;
            column = *c == L'\n' || width < 0 ? 0 : (unsigned)width;
        }
    }
    return row + (column == columns);
}

/*
 * After Ctrl-Z and fg, the terminal has the shell's modes. After a change of its width it has
 * wrapped the line anew, which libedit does not know, so that the line is drawn again.
 */
static void adapt_to_terminal(EditLine *edit)
{
    struct run_line_editor *editor;
    const unsigned columns = count_columns();

    el_get(edit, EL_CLIENTDATA, &editor);
    if (is_continued) {
        is_continued = 0;
        el_set(edit, EL_PREP_TERM, 0);
        el_set(edit, EL_PREP_TERM, 1);
        el_set(edit, EL_REFRESH);
    }
    if (columns > 0 && columns != editor->columns) {
        const unsigned n_rows = count_rows(edit, columns);

        editor->columns = columns;
        fputc('\r', stderr);
        if (n_rows > 0)
            fprintf(stderr, "\033[%uA", n_rows);
        fputs("\033[J", stderr);
        el_resize(edit);
        el_set(edit, EL_REFRESH);
    }
}

/* Read a character. libedit's own function begins again after Ctrl-C. */
static int read_character(EditLine *edit, wchar_t *out)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    mbstate_t state = {0};
    size_t length = (size_t)-2;

    while (length == (size_t)-2) {
        char byte;
        ssize_t n;

        while (poll(&in, 1, PAUSE_MS) <= 0) {
            if (run_signals_is_interrupted()) {
                const LineInfoW *info = el_wline(edit);
                struct run_line_editor *editor;

                el_get(edit, EL_CLIENTDATA, &editor);
                editor->is_cleared = info->lastchar > info->buffer || editor->is_continuing;
                return -1;
            }
            adapt_to_terminal(edit);
        }
        n = read(STDIN_FILENO, &byte, 1);
        if (n == 0 || (n < 0 && errno != EINTR))
            return (int)n;
        if (n > 0)
            length = mbrtowc(out, &byte, 1, &state);
    }
    if (length == (size_t)-1) /* not UTF-8 */
        *out = L'\uFFFD';
    return 1;
}

/* Insert pasted text up to its end mark. Lines stay lines; other control characters are dropped. */
static unsigned char paste(EditLine *edit, wint_t c)
{
    const size_t n_end = wcslen(PASTE_END);
    wchar_t *text = NULL;
    size_t n = 0, capacity = 0;

    while (gguf_reserve(&text, &capacity, n + 1, sizeof *text) == 0 &&
           read_character(edit, &text[n]) == 1) {
        if (text[n] == L'\r')
            text[n] = L'\n';
        n++;
        if (n >= n_end && wmemcmp(text + n - n_end, PASTE_END, n_end) == 0) {
            size_t n_kept = 0;

            for (size_t i = 0; i < n - n_end; i++)
                if (text[i] >= L' ' || text[i] == L'\n' || text[i] == L'\t')
                    text[n_kept++] = text[i];
            text[n_kept] = L'\0';
            el_winsertstr(edit, text);
            break;
        }
    }
    free(text);
    return CC_REFRESH;
}

struct run_line_editor *run_line_editor_open(void)
{
    struct run_line_editor *editor;
    HistEvent event;

    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return NULL;
    editor = calloc(1, sizeof *editor);
    if (!editor)
        return NULL;
    setlocale(LC_CTYPE, "C.UTF-8");
    run_signals_keep_terminal();
    editor->edit = el_init("ggufs-run", stdin, stderr, stderr);
    editor->history = history_init();
    if (!editor->edit || !editor->history) {
        run_line_editor_close(editor);
        return NULL;
    }
    history(editor->history, &event, H_SETSIZE, MOST_LINES);
    el_set(editor->edit, EL_CLIENTDATA, editor);
    el_set(editor->edit, EL_PROMPT, prompt);
    el_set(editor->edit, EL_EDITOR, "emacs");
    el_set(editor->edit, EL_HIST, history, editor->history);
    el_wset(editor->edit, EL_GETCFN, read_character);
    el_wset(editor->edit, EL_ADDFN, L"paste", L"Insert pasted text", paste);
    el_set(editor->edit, EL_BIND, PASTE_BEGIN, "paste", NULL);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        el_set(editor->edit, EL_BIND, keys[i][0], keys[i][1], NULL);
    signal(SIGCONT, on_continue);
    return editor;
}

void run_line_editor_close(struct run_line_editor *editor)
{
    if (!editor)
        return;
    if (editor->history)
        history_end(editor->history);
    if (editor->edit)
        el_end(editor->edit);
    free(editor);
}

/* Read one line, without its end. Sets is_continuing if a backslash ended it. */
static int read_part(struct run_line_editor *editor, struct gguf_buffer *line)
{
    int n = 0;
    const char *text;

    el_resize(editor->edit);
    editor->columns = count_columns();
    errno = 0;
    text = el_gets(editor->edit, &n);
    if (!text || n <= 0)
        return run_signals_is_interrupted() ? -EINTR : -ENODATA;
    if (n > 0 && text[n - 1] == '\n')
        n--;
    editor->is_continuing = n > 0 && text[n - 1] == '\\';
    if (editor->is_continuing)
        return gguf_buffer_add(line, text, (size_t)n - 1) < 0 ? -ENOMEM
                                                              : gguf_buffer_add_string(line, "\n");
    return gguf_buffer_add(line, text, (size_t)n);
}

int run_line_editor_read(struct run_line_editor *editor, struct gguf_buffer *line)
{
    HistEvent event;
    int code = 0;

    fputs(ASK_FOR_MARKS, stderr);
    is_continued = 0;
    do {
        gguf_buffer_drop(line, line->length);
        editor->is_continuing = editor->is_cleared = false;
        do
            code = read_part(editor, line);
        while (code == 0 && editor->is_continuing);
        if (editor->is_cleared) {
            run_signals_clear_interrupt();
            fputc('\n', stderr);
        }
    } while (editor->is_cleared);
    fputs(RUN_ASK_FOR_NO_MARKS, stderr);
    if (code == 0 && line->length > 0)
        history(editor->history, &event, H_ENTER, line->bytes);
    return code;
}

int run_plain_line_read(struct gguf_buffer *line)
{
    const bool is_terminal = isatty(STDIN_FILENO);
    char *input = NULL;
    size_t capacity = 0;
    ssize_t length;
    int code;

    for (;;) {
        length = getline(&input, &capacity, stdin);
        if (!is_terminal || !run_is_line_cut(input, length))
            break;
        run_message("the line was not read: a terminal cuts lines after %d bytes; give the text "
                    "as PROMPT \"$(cat FILE)\", or by a pipe",
                    RUN_TERMINAL_LINE_BYTES);
    }
    if (length < 0) {
        code = run_signals_is_interrupted() ? -EINTR : -ENODATA;
    } else {
        while (length > 0 && strchr("\r\n", input[length - 1]))
            length--;
        gguf_buffer_drop(line, line->length);
        code = gguf_buffer_add(line, input, (size_t)length);
    }
    free(input);
    return code;
}
