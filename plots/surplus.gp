# Whose kept set is the oracle's, and by how many tokens it is not.
HERE = ARG0[1:strlen(ARG0) - strlen("surplus.gp")]
ARGUMENTS = ARGC; DATA = ARG1; OUT = ARG2; WANT = ARG3; FOOTER = ARG4
load HERE."common.gp"
HEAD = "Tokens kept beyond the oracle, and tokens lost"
free(column_name) = has("p temperature vocab batch", column_name)
eval start(980, 620)
SUBTITLE = wanted("title", "every top-p cell of the run")
KERNELS = ""; most = 10
topp(x) = strcol("kind") eq "topp" && strcol("kept") ne "NA"
note(x) = topp(0) ? (KERNELS = add(KERNELS, strcol("kernel")), \
    (number(strcol("most_surplus")) > most ? (most = number(strcol("most_surplus")), 0) : 0), \
    (number(strcol("most_missing")) > most ? (most = number(strcol("most_missing")), 0) : 0)) : 0
stats DATA using (note(0)) nooutput
if (KERNELS eq "") print sprintf("%s: no gated top-p cell", DATA); exit status 2
NK = words(KERNELS)
array CELLS[NK]; array EQUAL[NK]; array REJECTED[NK]; array UNSUPPORTED[NK]
do for [k = 1:NK] { CELLS[k] = 0; EQUAL[k] = 0; REJECTED[k] = 0; UNSUPPORTED[k] = 0 }
exact(x) = number(strcol("most_surplus")) == 0 && number(strcol("most_missing")) == 0
tally(x) = !topp(0) ? 0 : (k_ = place(KERNELS, strcol("kernel")), v_ = strcol("verdict"), \
    CELLS[k_] = CELLS[k_] + 1, \
    EQUAL[k_] = EQUAL[k_] + (v_ ne "unsupported" && exact(0)), \
    REJECTED[k_] = REJECTED[k_] + (v_ eq "rejected"), \
    UNSUPPORTED[k_] = UNSUPPORTED[k_] + (v_ eq "unsupported"), 0)
stats DATA using (tally(0)) nooutput
# Zero in the middle, a decade each step to both sides.
scale(v) = v < 0 ? -log10(1 - v) : log10(1 + v)
reach = ceil(scale(most))
set xrange [-reach:reach * 2.05]
set xtics ("0" 0)
do for [d = 1:reach] {
    t = d < 4 ? sprintf("%d", 10 ** d) : sprintf("1e%d", d)
    set xtics add (t scale(10.0 ** d)); set xtics add ("-".t -scale(10.0 ** d)) }
set yrange [NK + 0.6:0.4]
set ytics ()
do for [k = 1:NK] { set ytics add (word(KERNELS, k) k) }
set xlabel "tokens of the worst row: lost (left), kept too many (right)" offset -20, 0
NOTES = "a dot is a cell, spread upwards and downwards to be seen; cross: rejected by the gate"
eval frame
do for [c = 1:4] { name = word("cells equal rejected unsupported", c)
    set label 900 + c name at first reach * word("1.13 1.32 1.55 1.86", c), graph 1.02 center font ",10" }
do for [k = 1:NK] {
    set label 10 + k sprintf("%d", CELLS[k]) at first reach * 1.13, first k center
    set label 40 + k sprintf("%d", EQUAL[k]) at first reach * 1.32, first k center
    set label 70 + k sprintf("%d", REJECTED[k]) at first reach * 1.55, first k center
    set label 100 + k sprintf("%d", UNSUPPORTED[k]) at first reach * 1.86, first k center }
set arrow 1 from first 0, graph 0 to first 0, graph 1 nohead lc rgb "#000000" dt 2
set tmargin at screen 0.86; set bmargin at screen 0.17; set lmargin at screen 0.13
lane(x) = place(KERNELS, strcol("kernel")) + 0.33 * sin(7.1 * column(0))
is(k, rejected) = topp(0) && strcol("kernel") eq word(KERNELS, k) && \
    (strcol("verdict") eq "rejected") == rejected && strcol("verdict") ne "unsupported"
more(k, rejected) = is(k, rejected) && (number(strcol("most_surplus")) > 0 || exact(0)) ? \
    scale(number(strcol("most_surplus"))) : NaN
less(k, rejected) = is(k, rejected) && number(strcol("most_missing")) > 0 ? \
    scale(-number(strcol("most_missing"))) : NaN
set output OUT
plot for [k = 1:NK] DATA using (more(k, 0)):(lane(0)) with points pt 7 ps 0.35 \
        lc rgb color_of(word(KERNELS, k), k), \
    for [k = 1:NK] DATA using (less(k, 0)):(lane(0)) with points pt 7 ps 0.35 \
        lc rgb color_of(word(KERNELS, k), k), \
    for [k = 1:NK] DATA using (more(k, 1)):(lane(0)) with points pt 2 ps 0.7 \
        lc rgb color_of(word(KERNELS, k), k), \
    for [k = 1:NK] DATA using (less(k, 1)):(lane(0)) with points pt 2 ps 0.7 \
        lc rgb color_of(word(KERNELS, k), k)
