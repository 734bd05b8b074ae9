# Latency as lines, one a kernel, in panels. The caller sets AXIS, PANEL (column names or "" for
# none), AXIS_TEXT, LOG_X and HEAD, after common.gp.
#
# Keys of the third argument: kind, family, l2, launch, p, temperature, vocab, batch. What is not
# given is taken from the first row of the file that fits.
eval start(980, 620)

# Pass 1: what is held fixed.
KIND = wanted("kind", ""); FAMILY = wanted("family", ""); L2 = wanted("l2", "")
LAUNCH = wanted("launch", ""); P = wanted("p", ""); TEMPERATURE = wanted("temperature", "")
VOCAB = wanted("vocab", ""); BATCH = wanted("batch", "")
same(have, want) = want eq "" || have eq want
free(column_name) = AXIS eq column_name || PANEL eq column_name
fits(x) = strcol("kind") ne "gumbel_statistic" && strcol("timed") ne "false" && \
    same(strcol("kind"), KIND) && same(strcol("family"), FAMILY) && same(strcol("l2"), L2) && \
    same(strcol("launch"), LAUNCH) && \
    (free("p_text") || same(strcol("p_text"), P)) && \
    (free("temperature") || same(strcol("temperature"), TEMPERATURE)) && \
    (free("vocab") || same(strcol("vocab"), VOCAB)) && \
    (free("batch") || same(strcol("batch"), BATCH))
found = 0
take(x) = fits(0) && !found ? (found = 1, KIND = strcol("kind"), FAMILY = strcol("family"), \
    L2 = strcol("l2"), LAUNCH = strcol("launch"), P = strcol("p_text"), \
    TEMPERATURE = strcol("temperature"), VOCAB = strcol("vocab"), BATCH = strcol("batch"), 0) : 0
stats DATA using (take(0)) nooutput
if (!found) print sprintf("%s: no timed cell fits '%s'", DATA, WANTED); exit status 2

# Pass 2: kernels, places on the axis, panels.
KERNELS = ""; XS = ""; PANELS = ""
panel_word(x) = PANEL eq "" ? "all" : strcol(PANEL)
note(x) = fits(0) ? (KERNELS = add(KERNELS, strcol("kernel")), XS = add(XS, strcol(AXIS)), \
    PANELS = add(PANELS, panel_word(0)), 0) : 0
stats DATA using (note(0)) nooutput
sorted(list) = (ordered_ = "", left_ = list, \
    (sum [i_ = 1:words(list)] (least_ = word(left_, 1), \
        (sum [j_ = 1:words(left_)] (real(word(left_, j_)) < real(least_) ? (least_ = word(left_, j_), 0) : 0)), \
        kept_ = "", (sum [j_ = 1:words(left_)] (word(left_, j_) eq least_ ? 0 : (kept_ = add(kept_, word(left_, j_)), 0))), \
        left_ = kept_, ordered_ = add(ordered_, least_), 0)), ordered_)
XS = sorted(XS)
if (PANEL ne "") PANELS = sorted(PANELS)
NK = words(KERNELS); NX = words(XS); NP = words(PANELS)

# Pass 3: the figures. A place that no row fills stays "-".
array MEDIAN[NK * NX * NP]; array LOW[NK * NX * NP]; array HIGH[NK * NX * NP]
array STATE[NK * NX * NP]
do for [i = 1:NK * NX * NP] { MEDIAN[i] = NaN; LOW[i] = NaN; HIGH[i] = NaN; STATE[i] = "-" }
at(panel, kernel, x) = ((panel - 1) * NK + kernel - 1) * NX + x
least = NaN; most = NaN
widen(value) = value > 0 ? (least = least <= value ? least : value, \
    most = most >= value ? most : value, 0) : 0
put(i, m, low, high, state) = STATE[i] ne "-" ? 0 : (STATE[i] = state, state ne "" ? 0 : \
    (MEDIAN[i] = m, LOW[i] = low > 0 ? low : m, HIGH[i] = high > 0 ? high : m, widen(m), \
     widen(LOW[i]), widen(HIGH[i])))
fill(x) = fits(0) ? put(at(place(PANELS, panel_word(0)), place(KERNELS, strcol("kernel")), \
        place(XS, strcol(AXIS))), number(strcol("median_ns")) / 1000, \
    number(strcol("ci_low_ns")) / 1000, number(strcol("ci_high_ns")) / 1000, \
    state_of(strcol("verdict"), strcol("median_ns"))) : 0
stats DATA using (fill(0)) nooutput
anything = least > 0
if (!anything) least = 1; most = 10

# Rows of letters under the lines, one a kernel that has any.
MARKED = ""; SEEN = ""
do for [i = 1:NP] { do for [k = 1:NK] { do for [x = 1:NX] {
    s = STATE[at(i, k, x)]
    if (s ne "") { MARKED = add(MARKED, word(KERNELS, k)); SEEN = add(SEEN, s) }
} } }
span = most > 1.2 * least ? most / least : 1.2
share = 0.05 * words(MARKED) + 0.05
bottom = least / span ** (share / (1.0 - share))
top = most * span ** 0.08

fixed = FAMILY
if (L2 ne "NA") fixed = fixed.", L2 ".L2
if (LAUNCH ne "NA") fixed = fixed.", launch ".LAUNCH
if (P ne "NA" && !free("p_text")) fixed = fixed.", p=".P
if (TEMPERATURE ne "NA" && !free("temperature")) fixed = fixed.", temperature=".TEMPERATURE
if (!free("vocab")) fixed = fixed.", vocabulary ".VOCAB
if (!free("batch")) fixed = fixed.", batch ".BATCH

COLS = NP > 4 ? 3 : NP > 1 ? 2 : 1
ROWS = (NP + COLS - 1) / COLS
set datafile nocolumnheaders
array INDEX[NX]
do for [x = 1:NX] { INDEX[x] = x }
set output OUT
set multiplot
set label 1 HEAD at screen 0.02, 0.97 font ",14" front
set label 2 fixed at screen 0.02, 0.93 textcolor rgb "#444444" front
set label 3 FOOTER at screen 0.02, 0.015 textcolor rgb "#666666" font ",9" front
# The legend: a line with the kernel's mark and its name.
legend_x = 0.02
do for [k = 1:NK] {
    name = word(KERNELS, k)
    set arrow 100 + k from screen legend_x, 0.885 to screen legend_x + 0.03, 0.885 nohead \
        lc rgb color_of(name, k) lw 2 dt dash_of(name, k)
    set label 100 + k name at screen legend_x + 0.035, 0.885
    set label 200 + k "" at screen legend_x + 0.015, 0.885 \
        point pt point_of(name, k) ps 0.8 lc rgb color_of(name, k)
    legend_x = legend_x + 0.05 + 0.0092 * strlen(name)
}
explained = "line: median; band: its 95 % interval"
do for [i = 1:words(STATES)] { if (has(SEEN, word(STATES, i))) {
    explained = explained.";  ".state_text(word(STATES, i)) } }
set label 4 explained at screen 0.02, 0.045 textcolor rgb "#444444" font ",10"

if (LOG_X) set logscale x
set logscale y
set format y "%g"
set xrange [real(word(XS, 1)) / (LOG_X ? 1.15 : 1) - (LOG_X ? 0 : 0.02) : \
            real(word(XS, NX)) * (LOG_X ? 1.15 : 1) + (LOG_X ? 0 : 0.02)]
set yrange [bottom:top]
set xtics ()
do for [x = 1:NX] { set xtics add (word(XS, x) real(word(XS, x))) }
if (NX > 5) set xtics rotate by -35
do for [i = 1:NP] {
    col = (i - 1) % COLS; row = (i - 1) / COLS
    set lmargin at screen 0.085 + col * 0.915 / COLS
    set rmargin at screen 0.085 + (col + 1) * 0.915 / COLS - 0.09 / COLS - 0.005
    set tmargin at screen 0.83 - row * 0.71 / ROWS
    set bmargin at screen 0.83 - (row + 1) * 0.71 / ROWS + 0.085
    set title (PANEL eq "" ? "" : PANEL_TEXT." ".word(PANELS, i)) offset 0, -0.6
    set ylabel (col == 0 ? "time per call (µs)" : "") offset 1, 0
    set xlabel (row == ROWS - 1 || i + COLS > NP ? AXIS_TEXT : "") offset 0, 0.4
    if (i == 2) { unset label 1; unset label 2; unset label 3; unset label 4
        do for [k = 1:NK] { unset label 100 + k; unset label 200 + k; unset arrow 100 + k } }
    n = 1000
    do for [k = 1:NK] { do for [x = 1:NX] {
        s = STATE[at(i, k, x)]
        shown = s eq "" ? " " : s
        set label n shown at first real(word(XS, x)), \
            graph 0.03 + 0.05 * (place(MARKED, word(KERNELS, k)) - 1) center font ",9" \
            textcolor rgb color_of(word(KERNELS, k), k)
        n = n + 1
    } }
    plot for [k = 1:NK] INDEX using \
            (real(word(XS, int($1)))):(LOW[at(i, k, int($1))]):(HIGH[at(i, k, int($1))]) \
            with filledcurves fs transparent solid 0.25 noborder lc rgb color_of(word(KERNELS, k), k), \
        for [k = 1:NK] INDEX using (real(word(XS, int($1)))):(MEDIAN[at(i, k, int($1))]) \
            with linespoints lc rgb color_of(word(KERNELS, k), k) dt dash_of(word(KERNELS, k), k) \
            pt point_of(word(KERNELS, k), k) ps 0.7 lw 1.5
}
unset multiplot
