# What the chart scripts share: arguments, terminal, colours, reading of results.tsv.
#
#   gnuplot -c plots/NAME.gp DATA.tsv OUT.svg|OUT.png ["key=value ..."] ["footer"]
#
# Fields are read as text and turned into numbers here: "NA" never becomes a zero, and the host's
# locale plays no part.
# `load` hides the arguments, so a chart copies them first: ARGUMENTS, DATA, OUT, WANT, FOOTER.
if (ARGUMENTS < 2) print "usage: gnuplot -c CHART.gp DATA.tsv OUT.svg|OUT.png [\"key=value ...\"] [\"footer\"]"; exit status 2

set datafile separator "\t"
set datafile columnheaders

WANTED = " ".WANT." "
if (FOOTER eq "") FOOTER = "data: ".DATA

# The value of a word key=value of a list with a space at both ends, else what is given.
value_of(list, key, otherwise) = (at_ = strstrt(list, " ".key."="), at_ == 0 ? otherwise : \
    (rest_ = list[at_ + strlen(key) + 2:*], rest_[1:strstrt(rest_, " ") - 1]))
wanted(key, otherwise) = value_of(WANTED, key, otherwise)

has(list, word) = strstrt(" ".list." ", " ".word." ") > 0
add(list, word) = has(list, word) ? list : list eq "" ? word : list." ".word
place(list, word) = has(list, word) ? words(list[1:strstrt(" ".list." ", " ".word." ")]) : 0
# gnuplot 5.4 reads "1e-7" as a whole number with rubbish behind it; "1.0e-7" it can.
number(text) = text eq "NA" || text eq "" ? NaN : (e_ = strstrt(text, "e"), \
    e_ > 1 && strstrt(text, ".") == 0 ? real(text[1:e_ - 1].".0".text[e_:*]) : real(text))

# Okabe and Ito's colours; every kernel also has its own point and dash, for print in grey.
KNOWN = "stock patched patched_fine sort exact floor log log1p fp64 murmur"
COLORS = "0xD55E00 0x0072B2 0x56B4E9 0x009E73 0xCC79A7 0x000000 0xD55E00 0x0072B2 0x009E73 0xCC79A7"
POINTS = "7 5 9 13 11 1 7 5 13 11"
SPARE_COLORS = "0xE69F00 0x666666 0x8B6508 0x4B0092"
SPARE_POINTS = "6 4 8 12"
kernel_rank(name, index_) = has(KNOWN, name) ? place(KNOWN, name) : 0
color_of(name, index_) = kernel_rank(name, index_) ? int(word(COLORS, kernel_rank(name, index_))) \
    : int(word(SPARE_COLORS, 1 + (index_ % 4)))
point_of(name, index_) = kernel_rank(name, index_) ? int(word(POINTS, kernel_rank(name, index_))) \
    : int(word(SPARE_POINTS, 1 + (index_ % 4)))
dash_of(name, index_) = name eq "floor" ? 2 : name eq "patched_fine" ? 4 : 1

# Why a cell has no point; the letter is drawn where the point would stand.
state_of(verdict, median) = verdict eq "NA" ? "N" : verdict eq "accepted" ? \
    (number(median) > 0 ? "" : number(median) == 0 ? "0" : "N") : \
    verdict eq "rejected" ? "R" : verdict eq "unsupported" ? "U" : verdict eq "ambiguous" ? "A" : \
    verdict eq "drift" ? "D" : verdict eq "timeout" ? "T" : "I"
STATES = "R U A D T I N 0 -"
state_text(s) = s eq "R" ? "R rejected" : s eq "U" ? "U unsupported" : s eq "A" ? "A ambiguous" : \
    s eq "D" ? "D drift" : s eq "T" ? "T timeout" : s eq "I" ? "I unreadable input" : \
    s eq "N" ? "N not measured" : s eq "0" ? "0 is zero: left out, a log axis has no place for it" : \
    "- not in this run"

# SVG for the page and the browser, PNG for everything else. Titles stand as they are.
is_png = strlen(OUT) > 4 && OUT[strlen(OUT) - 3:*] eq ".png"
start(width, height) = is_png \
    ? sprintf("set terminal pngcairo noenhanced size %d,%d font 'sans-serif,11' background '#ffffff'", width, height) \
    : sprintf("set terminal svg noenhanced size %d,%d font 'sans-serif,12' background '#ffffff'", width, height)

# The cells of a chart: rows that agree with the third argument, and in what it leaves open with
# the first row that fits. free(column) says what the chart spreads out.
KIND = wanted("kind", ""); FAMILY = wanted("family", ""); L2 = wanted("l2", "")
LAUNCH = wanted("launch", ""); P = wanted("p", ""); TEMPERATURE = wanted("temperature", "")
VOCAB = wanted("vocab", ""); BATCH = wanted("batch", "")
same(have, want) = want eq "" || have eq want
fits(x) = strcol("kind") ne "gumbel_statistic" && strcol("timed") ne "false" && \
    same(strcol("kind"), KIND) && same(strcol("family"), FAMILY) && same(strcol("l2"), L2) && \
    same(strcol("launch"), LAUNCH) && \
    (free("p") || same(strcol("p_text"), P)) && \
    (free("temperature") || same(strcol("temperature"), TEMPERATURE)) && \
    (free("vocab") || same(strcol("vocab"), VOCAB)) && \
    (free("batch") || same(strcol("batch"), BATCH))
found = 0
take(x) = fits(0) && !found ? (found = 1, KIND = strcol("kind"), FAMILY = strcol("family"), \
    L2 = strcol("l2"), LAUNCH = strcol("launch"), P = strcol("p_text"), \
    TEMPERATURE = strcol("temperature"), VOCAB = strcol("vocab"), BATCH = strcol("batch"), 0) : 0
fix = 'stats DATA using (take(0)) nooutput; ' . \
    'if (!found) print sprintf("%s: no timed cell fits \"%s\"", DATA, WANT); exit status 2'
unit(value, before) = value eq "NA" ? "" : ", ".before.value
fixed(x) = FAMILY.unit(L2, "L2 ").unit(LAUNCH, "launch ").(free("p") ? "" : unit(P, "p=")). \
    (free("temperature") ? "" : unit(TEMPERATURE, "temperature=")). \
    (free("vocab") ? "" : ", vocabulary ".VOCAB).(free("batch") ? "" : ", batch ".BATCH)
# Numbers in a list of words, least first.
sorted(list) = (ordered_ = "", left_ = list, \
    (sum [i_ = 1:words(list)] (least_ = word(left_, 1), \
        (sum [j_ = 1:words(left_)] (number(word(left_, j_)) < number(least_) ? \
            (least_ = word(left_, j_), 0) : 0)), \
        kept_ = "", (sum [j_ = 1:words(left_)] (word(left_, j_) eq least_ ? 0 : \
            (kept_ = add(kept_, word(left_, j_)), 0))), \
        left_ = kept_, ordered_ = add(ordered_, least_), 0)), ordered_)

# Title, what is held fixed, footer; and a legend of words(names) kernels, one line.
frame = 'set label 1 HEAD at screen 0.02, 0.97 font ",14" front; ' . \
    'set label 2 SUBTITLE at screen 0.02, 0.93 textcolor rgb "#444444" front; ' . \
    'set label 3 FOOTER at screen 0.02, 0.015 textcolor rgb "#666666" font ",9" front; ' . \
    'set label 4 NOTES at screen 0.02, 0.045 textcolor rgb "#444444" font ",10" front'

set style line 100 lc rgb "#d9d9d9" lw 0.6
set border 3 lc rgb "#555555"
set tics nomirror out scale 0.6
set grid back ls 100
unset key
