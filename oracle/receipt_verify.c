/* The list of what became of each item that a receipt binds. */
#include "oracle/receipt.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char *receipt_state_name(enum receipt_state state) {
    switch (state) {
    case RECEIPT_VERIFIED:
        return "verified";
    case RECEIPT_CHANGED:
        return "changed";
    case RECEIPT_ELSEWHERE:
        return "not recomputable here";
    case RECEIPT_STATES:
        break;
    }
    return "unknown";
}

static void free_item(struct receipt_item *item) {
    free(item->group);
    free(item->name);
    free(item->detail);
}

void receipt_add(struct receipt_items *items, enum receipt_state state, const char *group,
                 const char *name, const char *detail_format, ...) {
    if (items->count == items->room) {
        const size_t room = items->room ? 2 * items->room : 64;
        struct receipt_item *grown = realloc(items->items, room * sizeof *grown);
        if (!grown) {
            items->short_of_memory = true;
            return;
        }
        items->items = grown;
        items->room = room;
    }
    char detail[512];
    va_list arguments;
    va_start(arguments, detail_format);
    vsnprintf(detail, sizeof detail, detail_format, arguments);
    va_end(arguments);
    struct receipt_item item = {strdup(group), strdup(name), strdup(detail), state};
    if (!item.group || !item.name || !item.detail) {
        free_item(&item);
        items->short_of_memory = true;
        return;
    }
    items->items[items->count++] = item;
    items->by_state[state]++;
}

void receipt_items_free(struct receipt_items *items) {
    for (size_t i = 0; i < items->count; i++)
        free_item(&items->items[i]);
    free(items->items);
    *items = (struct receipt_items){0};
}

static bool group_seen_before(const struct receipt_items *items, size_t index) {
    for (size_t i = 0; i < index; i++)
        if (!strcmp(items->items[i].group, items->items[index].group))
            return true;
    return false;
}

static void print_group(const struct receipt_items *items, const char *group, FILE *stream) {
    size_t by_state[RECEIPT_STATES] = {0};
    for (size_t i = 0; i < items->count; i++)
        if (!strcmp(items->items[i].group, group))
            by_state[items->items[i].state]++;
    fprintf(stream, "%-12s", group);
    const char *comma = " ";
    for (int state = 0; state < RECEIPT_STATES; state++) {
        if (!by_state[state])
            continue;
        fprintf(stream, "%s%zu %s", comma, by_state[state],
                receipt_state_name((enum receipt_state)state));
        comma = ", ";
    }
    fputc('\n', stream);
}

void receipt_items_print(const struct receipt_items *items, FILE *stream) {
    for (size_t i = 0; i < items->count; i++)
        if (!group_seen_before(items, i))
            print_group(items, items->items[i].group, stream);
    for (size_t i = 0; i < items->count; i++) {
        const struct receipt_item *item = &items->items[i];
        if (item->state != RECEIPT_VERIFIED)
            fprintf(stream, "%s: %s: %s%s%s\n", receipt_state_name(item->state), item->group,
                    item->name, *item->detail ? ": " : "", item->detail);
    }
    fprintf(stream, "%zu verified, %zu changed, %zu not recomputable here%s\n",
            items->by_state[RECEIPT_VERIFIED], items->by_state[RECEIPT_CHANGED],
            items->by_state[RECEIPT_ELSEWHERE],
            items->short_of_memory ? "; memory ran short, the list is not whole" : "");
}

int receipt_exit_code(const struct receipt_items *items, bool strict) {
    if (items->by_state[RECEIPT_CHANGED])
        return 1;
    if (items->short_of_memory)
        return 3;
    return strict && items->by_state[RECEIPT_ELSEWHERE] ? 3 : 0;
}
