#include "bench/external.h"

#include "oracle/gate.h"
#include "oracle/receipt.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wordexp.h>

enum { LEAST_REPEATS = 5 };

static size_t no_workspace(const struct topp_problem *problem) {
    (void)problem;
    return 0;
}

/* Marks the variants of programs; no device launches them. */
static int never_launched(const struct topp_problem *problem, void *workspace, size_t bytes,
                          void *stream) {
    (void)problem, (void)workspace, (void)bytes, (void)stream;
    return KERNEL_UNSUPPORTED;
}

const struct external *external_of(const struct topp_variant *variant) {
    if (!variant || variant->launch != never_launched)
        return NULL;
    return (const struct external *)(const void *)((const char *)variant -
                                                   offsetof(struct external, variant));
}

static bool is_name_byte(char byte) {
    return isalnum((unsigned char)byte) || (byte && strchr("_.+-", byte));
}

/* The length of NAME in "NAME=COMMAND", 0 if there is none. */
static size_t given_name(const char *text) {
    size_t length = 0;
    while (is_name_byte(text[length]))
        length++;
    return text[length] == '=' ? length : 0;
}

/* The script of "python3 dir/script.py ...", else the first word; without folder and extension. */
static void name_of_command(const char *command, char *name, size_t bytes) {
    const char *best = command + strspn(command, " ");
    size_t best_length = strcspn(best, " ");
    for (const char *word = best; *word;) {
        const size_t length = strcspn(word, " ");
        if (length > 3 && !strncmp(word + length - 3, ".py", 3)) {
            best = word;
            best_length = length - 3;
            break;
        }
        word += length + strspn(word + length, " ");
    }
    for (size_t i = best_length; i-- > 0;)
        if (best[i] == '/') {
            best += i + 1;
            best_length -= i + 1;
            break;
        }
    snprintf(name, bytes, "%.*s", (int)best_length, best);
}

static enum tb_status set_name(const char *text, struct external *external,
                               struct tb_error *error) {
    const size_t given = given_name(text);
    external->command = given ? text + given + 1 : text;
    if (given >= sizeof external->name)
        return tb_fail(error, TB_USAGE, "--external '%.60s...': a name has at most %d bytes", text,
                       EXTERNAL_NAME_BYTES - 1);
    if (given)
        snprintf(external->name, sizeof external->name, "%.*s", (int)given, text);
    else
        name_of_command(text, external->name, sizeof external->name);
    size_t good = 0;
    while (is_name_byte(external->name[good]))
        good++;
    if (external->command[strspn(external->command, " ")] && good && !external->name[good])
        return TB_OK;
    return tb_fail(error, TB_USAGE,
                   "--external '%.200s': wanted NAME=COMMAND, the name of letters, digits and "
                   "any of _.+-",
                   text);
}

static enum tb_status check_unique(const struct external_list *list, size_t at,
                                   struct tb_error *error) {
    const struct external *external = &list->items[at];
    if (topp_find(external->name, external->variant.device))
        return tb_fail(error, TB_USAGE,
                       "--external: a kernel of this program is called `%s`: give another name, "
                       "NAME=COMMAND",
                       external->name);
    for (size_t i = 0; i < at; i++)
        if (!strcmp(list->items[i].name, external->name))
            return tb_fail(error, TB_USAGE,
                           "--external: two programs are called `%s`: give them names, "
                           "NAME=COMMAND",
                           external->name);
    return TB_OK;
}

static enum tb_status make_one(const struct option_external *option, enum kernel_device device,
                               struct external_list *list, struct tb_error *error) {
    struct external *external = &list->items[list->count];
    const bool cuda = device == KERNEL_DEVICE_CUDA;
    *external = (struct external){.launch = LAUNCH_NONE, .repeats = option->repeats};
    if (cuda)
        external->launch = option->graph ? LAUNCH_GRAPH : LAUNCH_STREAM;
    external->variant = (struct topp_variant){
        .name = external->name,
        .summary = "another program",
        .device = device,
        .output = (enum topp_output)option->output,
        .contract = option->contract ? option->contract : "exact",
        .workspace_size = no_workspace,
        .launch = never_launched,
    };
    enum tb_status status = set_name(option->text, external, error);
    if (status == TB_OK)
        status = check_unique(list, list->count, error);
    list->extras[list->count] =
        (struct plan_extra){.variant = &external->variant, .launch = external->launch};
    list->count++;
    return status;
}

enum tb_status external_list_make(const struct option_external *options, size_t count,
                                  enum kernel_device device, struct external_list *list,
                                  struct tb_error *error) {
    enum tb_status status = TB_OK;
    memset(list, 0, sizeof *list);
    for (size_t i = 0; i < count && status == TB_OK; i++)
        status = make_one(&options[i], device, list, error);
    return status;
}

void external_find_inject(struct external_list *list, const char *program_dir) {
    static const char *const places[] = {"", "../lib/"};
    const char *named = getenv("TOPP_BENCH_INJECT");
    if (named && *named) {
        snprintf(list->inject, sizeof list->inject, "%s", named);
        return;
    }
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        snprintf(list->inject, sizeof list->inject, "%s/%slibtopp_inject.so", program_dir,
                 places[i]);
        if (access(list->inject, R_OK) == 0)
            return;
    }
    list->inject[0] = '\0';
}

static bool is_file(const char *path) {
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISREG(facts.st_mode);
}

/* Where the shell finds a command's first word. */
static bool find_program(const char *word, char *path, size_t bytes) {
    if (strchr(word, '/')) {
        snprintf(path, bytes, "%s", word);
        return is_file(path);
    }
    const char *folders = getenv("PATH");
    while (folders && *folders) {
        const size_t length = strcspn(folders, ":");
        snprintf(path, bytes, "%.*s/%s", (int)length, folders, word);
        if (is_file(path) && access(path, X_OK) == 0)
            return true;
        folders += length + (folders[length] == ':');
    }
    return false;
}

static void add_file(json_t *files, const char *path) {
    char hex[SHA256_HEX_BYTES];
    if (is_file(path) && sha256_file(path, hex, NULL) == TB_OK)
        json_array_append_new(files, json_pack("{s:s, s:s}", "path", path, "sha256", hex));
}

/* A command that is more than words (a pipe, a semicolon) keeps its text alone. */
static json_t *files_of(const char *command) {
    json_t *files = json_array();
    wordexp_t words;
    char path[4096];
    const int failed = wordexp(command, &words, WRDE_NOCMD);
    for (size_t i = 0; !failed && i < words.we_wordc; i++) {
        const char *word = words.we_wordv[i];
        if (i > 0)
            add_file(files, word);
        else if (find_program(word, path, sizeof path))
            add_file(files, path);
    }
    if (!failed || failed == WRDE_NOSPACE)
        wordfree(&words);
    return files;
}

static const char *launch_text(enum cell_launch launch) {
    return launch == LAUNCH_GRAPH ? "graph" : launch == LAUNCH_STREAM ? "stream" : "";
}

json_t *external_list_to_json(const struct external_list *list) {
    json_t *array = json_array();
    for (size_t i = 0; list && i < list->count; i++) {
        const struct external *external = &list->items[i];
        const char *launch = launch_text(external->launch);
        json_array_append_new(
            array, json_pack("{s:s, s:s, s:s, s:s, s:o, s:i, s:o}", "name", external->name,
                             "command", external->command, "output",
                             gate_output_name((enum gate_output)external->variant.output),
                             "contract", external->variant.contract, "launch",
                             *launch ? json_string(launch) : json_null(), "repeats",
                             (int)external->repeats, "files", files_of(external->command)));
    }
    return array;
}

enum tb_status external_list_from_json(const json_t *json, enum kernel_device device,
                                       struct external_list *list, struct tb_error *error) {
    memset(list, 0, sizeof *list);
    for (size_t i = 0; i < json_array_size(json); i++) {
        const json_t *item = json_array_get(json, i);
        const char *name = json_string_value(json_object_get(item, "name"));
        const char *command = json_string_value(json_object_get(item, "command"));
        const char *contract = json_string_value(json_object_get(item, "contract"));
        const char *output = json_string_value(json_object_get(item, "output"));
        const char *launch = json_string_value(json_object_get(item, "launch"));
        enum gate_output kind;
        struct option_external option = {.text = command, .contract = contract};
        if (list->count == OPTION_MOST_EXTERNAL || !name || !command || !contract || !output ||
            !gate_output_parse(output, &kind))
            return tb_fail(error, TB_UNREADABLE, "run.externals[%zu] describes no program", i);
        option.output = (int)kind;
        option.graph = launch && !strcmp(launch, "graph");
        const enum tb_status status = make_one(&option, device, list, error);
        if (status != TB_OK)
            return status;
        snprintf(list->items[i].name, sizeof list->items[i].name, "%s", name);
        list->items[i].command = command;
    }
    return TB_OK;
}

int32_t external_repeats(const struct external *external, const struct timing_settings *timing,
                         int32_t draws) {
    if (external->repeats > 0)
        return external->repeats;
    const int64_t wanted = (int64_t)timing->min_samples * timing->blocks;
    const int64_t each = (wanted + draws - 1) / draws;
    return each < LEAST_REPEATS ? LEAST_REPEATS : (int32_t)(each < INT32_MAX ? each : INT32_MAX);
}
