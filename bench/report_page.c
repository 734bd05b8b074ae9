#include "bench/report_page.h"

#include <stdlib.h>
#include <string.h>

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1a1a1a;--soft:#5c5c5c;--paper:#fff;--card:#f5f6f7;"
    "--line:#d5d8dc;--good:#00664b;--bad:#a83c00;--link:#005a9c}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e8e8e8;--soft:#a5a9ae;--paper:#16181b;"
    "--card:#212429;--line:#3a3f45;--good:#4cc9a0;--bad:#ff9a5c;--link:#7cc0f5}"
    "figure svg{filter:invert(.91) hue-rotate(180deg)}}\n"
    "*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);"
    "font:15px/1.5 system-ui,sans-serif}\n"
    "main,header,footer{max-width:1240px;margin:0 auto;padding:0 20px}"
    "h1{font-size:24px;margin:24px 0 0}h2{font-size:19px;margin:36px 0 10px;"
    "border-bottom:1px solid var(--line);padding-bottom:4px}"
    "header p,footer{color:var(--soft)}footer{padding:24px 20px}a{color:var(--link)}\n"
    "nav{display:flex;flex-wrap:wrap;gap:4px 16px}.tiles{display:flex;flex-wrap:wrap;gap:10px}"
    "figcaption{color:var(--soft)}.tile{background:var(--card);border:1px solid "
    "var(--line);border-radius:6px;"
    "padding:8px 14px;min-width:96px}.tile b{display:block;font-size:22px}"
    ".verdict{font-size:18px;font-weight:600}.good{color:var(--good)}.bad{color:var(--bad)}\n"
    "figure{margin:12px 0}figure svg{display:block;width:100%;height:auto;max-width:980px}"
    "summary{cursor:pointer}details.group{border:1px solid var(--line);"
    "border-radius:6px;padding:8px 14px;margin:10px 0}details.group>summary{font-weight:600}\n"
    ".scroll{overflow:auto;max-height:80vh;border:1px solid var(--line);border-radius:6px}"
    "table{border-collapse:collapse;width:100%}th,td{padding:4px 9px;text-align:left;"
    "border-bottom:1px solid var(--line);vertical-align:top}"
    "table.cells{font-size:13px}table.cells td:first-child{overflow-wrap:anywhere;"
    "min-width:19em}table.cells th{position:sticky;top:0;background:var(--card);"
    "white-space:nowrap}table.cells "
    "th:nth-child(n+3){text-align:right}td.n{text-align:right;white-space:nowrap;"
    "font-variant-numeric:tabular-nums}th button{font:inherit;font-weight:600;border:0;"
    "background:none;color:inherit;padding:0;cursor:pointer}th[aria-sort=ascending] button::after"
    "{content:' \\2191'}th[aria-sort=descending] button::after{content:' \\2193'}\n"
    "code,pre{font:12.5px/1.45 ui-monospace,monospace;overflow-wrap:anywhere;white-space:pre-wrap}"
    "pre{background:var(--card);padding:10px;border-radius:6px}"
    ".filters{display:flex;flex-wrap:wrap;gap:10px;margin:10px 0;align-items:center}"
    ".filters[hidden]{display:none}input,select{font:inherit;color:inherit;"
    "background:var(--paper);border:1px solid var(--line);border-radius:4px;padding:4px 8px;"
    "max-width:100%}input[type=search]{flex:1 1 260px}table.plain td:first-child{width:30%}"
    "table.plain td{overflow-wrap:anywhere}\n"
    "@media print{.scroll{max-height:none;overflow:visible}.filters,nav{display:none}"
    "figure{break-inside:avoid}}\n";

/* Sorts by data-v (numbers) or text; rows without a value stay last in both directions. */
static const char script[] =
    "(function(){'use strict';\n"
    "document.querySelectorAll('table.cells').forEach(function(table){\n"
    "var body=table.tBodies[0],rows=Array.prototype.slice.call(body.rows);\n"
    "function key(row,i){var c=row.cells[i],v=c.getAttribute('data-v');"
    "if(v!==null)return v===''?null:Number(v);return c.getAttribute('data-s')||c.textContent}\n"
    "Array.prototype.forEach.call(table.tHead.rows[0].cells,function(head,i){\n"
    "var button=document.createElement('button');button.type='button';"
    "button.textContent=head.textContent;head.textContent='';head.appendChild(button);\n"
    "button.addEventListener('click',function(){\n"
    "var up=head.getAttribute('aria-sort')!=='ascending';\n"
    "Array.prototype.forEach.call(head.parentNode.cells,function(h){"
    "h.removeAttribute('aria-sort')});\n"
    "head.setAttribute('aria-sort',up?'ascending':'descending');\n"
    "rows.sort(function(a,b){var x=key(a,i),y=key(b,i);if(x===y)return 0;"
    "if(x===null)return 1;if(y===null)return -1;return (x<y?-1:1)*(up?1:-1)});\n"
    "var all=document.createDocumentFragment();rows.forEach(function(r){all.appendChild(r)});"
    "body.appendChild(all)})});\n"
    "var bar=document.getElementById(table.id+'-filters');if(!bar)return;bar.hidden=false;\n"
    "var text=bar.querySelector('input'),picks=bar.querySelectorAll('select'),"
    "said=bar.querySelector('output');\n"
    "function apply(){var words=text.value.toLowerCase().split(/\\s+/),shown=0;\n"
    "rows.forEach(function(r){var ok=true,name=r.getAttribute('data-name');\n"
    "words.forEach(function(w){if(w&&name.indexOf(w)<0)ok=false});\n"
    "picks.forEach(function(p){if(p.value&&r.getAttribute('data-'+p.name)!==p.value)ok=false});\n"
    "r.hidden=!ok;if(ok)shown++});said.textContent=shown+' of '+rows.length+' cells'}\n"
    "text.addEventListener('input',apply);picks.forEach(function(p){"
    "p.addEventListener('change',apply)});apply()})})();\n";

void page_text(FILE *stream, const char *text) {
    for (; *text; text++) {
        const char *instead = *text == '&'    ? "&amp;"
                              : *text == '<'  ? "&lt;"
                              : *text == '>'  ? "&gt;"
                              : *text == '"'  ? "&quot;"
                              : *text == '\'' ? "&#39;"
                                              : NULL;
        if (instead)
            fputs(instead, stream);
        else
            fputc((unsigned char)*text < ' ' ? ' ' : *text, stream);
    }
}

void page_open(FILE *stream, const char *title, const char *subtitle) {
    fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
          "<link rel=\"icon\" href=\"data:,\">\n<title>",
          stream);
    page_text(stream, title);
    fprintf(stream, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<header>\n<h1>", style);
    page_text(stream, title);
    fputs("</h1>\n<p>", stream);
    page_text(stream, subtitle);
    fputs("</p>\n</header>\n<main>\n", stream);
}

void page_close(FILE *stream) {
    fprintf(stream,
            "</main>\n<footer>Made by topp-bench. Nothing on this page is loaded from "
            "elsewhere.</footer>\n<script>\n%s</script>\n</body>\n</html>\n",
            script);
}

static char *read_text(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    char *text = NULL;
    if (fseek(file, 0, SEEK_END) == 0) {
        const long size = ftell(file);
        rewind(file);
        text = size > 0 ? malloc((size_t)size + 1) : NULL;
        if (text && fread(text, 1, (size_t)size, file) == (size_t)size)
            text[size] = '\0';
        else {
            free(text);
            text = NULL;
        }
    }
    fclose(file);
    return text;
}

bool page_svg(FILE *stream, const char *path, const char *prefix) {
    static const char *const marks[] = {"id='", "id=\"", "href='#", "href=\"#", "url(#"};
    char *text = read_text(path);
    const char *at = text ? strstr(text, "<svg") : NULL;
    while (at && *at) {
        const char *next = NULL;
        size_t length = 0;
        for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
            const size_t here = strlen(marks[i]);
            if (!strncmp(at, marks[i], here) && (i > 1 || at[-1] == ' ')) {
                next = at + here;
                length = here;
            }
        }
        if (next) {
            fwrite(at, 1, length, stream);
            fputs(prefix, stream);
            at = next;
        } else
            fputc(*at++, stream);
    }
    const bool good = at != NULL;
    free(text);
    return good;
}

/* One word of a command line. */
static void put_word(FILE *stream, const char *word) {
    const char *plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./@%+-";
    if (*word && strspn(word, plain) == strlen(word)) {
        page_text(stream, word);
        return;
    }
    fputs("&#39;", stream);
    for (; *word; word++) {
        const char letter[2] = {*word, '\0'};
        if (*word == '\'')
            fputs("&#39;\\&#39;&#39;", stream);
        else
            page_text(stream, letter);
    }
    fputs("&#39;", stream);
}

static void put_option(FILE *stream, const char *name, const char *value) {
    if (!value || !*value)
        return;
    fprintf(stream, " --%s ", name);
    put_word(stream, value);
}

static const char *member(const json_t *object, const char *name) {
    return json_string_value(json_object_get(object, name));
}

/* Is it the kernel of this cell? Names begin with kind/kernel/. */
static bool runs(const char *cell, const char *kernel) {
    const char *at = strchr(cell, '/');
    const size_t length = kernel ? strlen(kernel) : 0;
    return at && length && !strncmp(at + 1, kernel, length) && at[1 + length] == '/';
}

/* --plugin or --external of a kernel that is not built in. */
static void put_origin(FILE *stream, const json_t *run, const char *cell) {
    size_t i, k;
    const json_t *plugin, *variant, *external;
    json_array_foreach(json_object_get(run, "plugins"), i, plugin) {
        json_array_foreach(json_object_get(plugin, "variants"), k, variant) {
            if (!runs(cell, member(variant, "name")))
                continue;
            put_option(stream, "plugin", member(plugin, "path"));
            break;
        }
    }
    json_array_foreach(json_object_get(run, "externals"), i, external) {
        const char *name = member(external, "name"), *command = member(external, "command");
        char text[1024];
        if (!runs(cell, name) || !command)
            continue;
        snprintf(text, sizeof text, "%s=%s", name, command);
        put_option(stream, "external", text);
        put_option(stream, "external-output", member(external, "output"));
        put_option(stream, "external-contract", member(external, "contract"));
        put_option(stream, "external-launch", member(external, "launch"));
        const json_int_t repeats = json_integer_value(json_object_get(external, "repeats"));
        if (repeats > 0)
            fprintf(stream, " --external-repeats %lld", (long long)repeats);
    }
}

void page_command(FILE *stream, const json_t *run, const char *cell) {
    const json_t *profile = json_object_get(run, "profile"), *seed = json_object_get(run, "seed");
    const char *file = member(profile, "file"), *input = member(run, "input");
    const char *timer = member(json_object_get(run, "device"), "timer");
    fputs("bench_topp", stream);
    put_option(stream, "profile", file ? file : member(profile, "name"));
    put_option(stream, "device", member(run, "device_kind"));
    put_option(stream, "input", input);
    if (json_is_true(json_object_get(run, "unfrozen")))
        fprintf(stream, " --seed %lld", (long long)json_integer_value(seed));
    if (json_integer_value(json_object_get(run, "slices")) > 0)
        fprintf(stream, " --slices %lld",
                (long long)json_integer_value(json_object_get(run, "slices")));
    if (timer && !strcmp(timer, "events"))
        put_option(stream, "timer", timer);
    put_origin(stream, run, cell);
    put_option(stream, "case", cell);
}

static void put_value(FILE *stream, const json_t *value) {
    if (json_is_string(value)) {
        page_text(stream, json_string_value(value));
        return;
    }
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(10));
    page_text(stream, !text || json_is_null(value) ? "-" : text);
    free(text);
}

static void put_members(FILE *stream, const char *outer, const json_t *object) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) {
        char name[200];
        snprintf(name, sizeof name, "%s%s%s", outer, *outer ? "." : "", key);
        if (json_is_object(value)) {
            put_members(stream, name, value);
            continue;
        }
        fputs("<tr><td>", stream);
        page_text(stream, name);
        fputs("</td><td>", stream);
        put_value(stream, value);
        fputs("</td></tr>\n", stream);
    }
}

void page_object(FILE *stream, const json_t *object) {
    fputs("<table class=\"plain\"><tbody>\n", stream);
    put_members(stream, "", object);
    fputs("</tbody></table>\n", stream);
}
