# How far each kernel is from reading and writing the logits once.
HERE = ARG0[1:strlen(ARG0) - strlen("floor.gp")]
ARGUMENTS = ARGC; DATA = ARG1; OUT = ARG2; WANT = ARG3; FOOTER = ARG4
load HERE."common.gp"
HEAD = "Distance from the memory floor"
free(column_name) = has("p temperature vocab batch", column_name)
if (KIND eq "") KIND = "topp"
eval fix
eval start(980, 620)
SUBTITLE = fixed(0).", every vocabulary, batch and p"
KERNELS = ""; least_x = 1e300; most_x = 0; most_y = 10; refused = 0
size(x) = number(strcol("vocab")) * number(strcol("batch"))
ratio(x) = number(strcol("ratio_to_floor"))
note(x) = fits(0) && strcol("kernel") ne "floor" ? (KERNELS = add(KERNELS, strcol("kernel")), \
    least_x = least_x < size(0) ? least_x : size(0), most_x = most_x > size(0) ? most_x : size(0), \
    (ratio(0) > most_y ? (most_y = ratio(0), 0) : 0), \
    (ratio(0) > 0 ? 0 : (refused = refused + 1, 0))) : 0
stats DATA using (note(0)) nooutput
NK = words(KERNELS)
has_time(x) = state_of(strcol("verdict"), strcol("median_ns")) eq ""
SEEN = ""
mark(x) = fits(0) && strcol("kernel") ne "floor" && !(ratio(0) > 0) ? (SEEN = add(SEEN, \
    has_time(0) ? "F" : state_of(strcol("verdict"), strcol("median_ns"))), 0) : 0
stats DATA using (mark(0)) nooutput
set logscale xy
set format x "%.0s %c"
set format y "%gx"
set xrange [least_x / 1.5:most_x * 1.5]
set yrange [(refused ? 0.3 : 0.7):most_y * 1.6]
set xlabel "logits in the call (vocabulary x batch)"
set ylabel "time per call / time of the floor beside it"
NOTES = "floor: one pass over the logits, timed in the same run"
if (refused) NOTES = NOTES.sprintf(";  %d without a time:", refused)
do for [i = 1:words(STATES)] { if (has(SEEN, word(STATES, i))) {
    NOTES = NOTES." ".state_text(word(STATES, i)) } }
if (has(SEEN, "F")) NOTES = NOTES." F no floor beside it"
eval frame
set arrow 1 from graph 0, first 1 to graph 1, first 1 nohead lc rgb "#000000" dt 2 lw 1.5
set label 5 "the floor" at graph 0.995, first 1 right offset 0, 0.6
set key at screen 0.98, 0.885 right top horizontal samplen 1
set tmargin at screen 0.83; set bmargin at screen 0.17; set lmargin at screen 0.085
# Kernels stand a little beside each other, so that none hides another.
shift(k) = 1.035 ** (k - (NK + 1) / 2.0)
is(k) = fits(0) && strcol("kernel") eq word(KERNELS, k)
set output OUT
plot for [k = 1:NK] DATA using (is(k) ? size(0) * shift(k) : NaN):(ratio(0)) with points \
        pt point_of(word(KERNELS, k), k) ps 0.8 lc rgb color_of(word(KERNELS, k), k) \
        title word(KERNELS, k), \
    for [k = 1:NK] DATA using (is(k) && !(ratio(0) > 0) ? size(0) * shift(k) : NaN): \
        (0.75 / 1.13 ** k):(has_time(0) ? "F" : state_of(strcol("verdict"), strcol("median_ns"))) with labels \
        font ",9" textcolor rgb color_of(word(KERNELS, k), k) notitle
