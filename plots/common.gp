# What the chart scripts share: arguments, terminal, colours, reading of results.tsv.
#
#   gnuplot -c plots/NAME.gp DATA.tsv OUT.svg|OUT.png ["key=value ..."] ["footer"]
#
# Fields are read as text and turned into numbers here: "NA" never becomes a zero, and the host's
# locale plays no part.
# `load` hides the arguments, so a chart copies them first: ARGUMENTS, DATA, OUT, WANT, FOOTER.
if (ARGUMENTS < 2) print "usage: gnuplot -c CHART.gp DATA.tsv OUT.svg|OUT.png [\"key=value ...\"] [\"footer\"]"; exit status 2

set encoding utf8
set decimalsign
set datafile separator "\t"
set datafile columnheaders

WANTED = " ".WANT." "

# The value of a word key=value of the third argument, else what is given.
wanted(key, otherwise) = (at_ = strstrt(WANTED, " ".key."="), at_ == 0 ? otherwise : \
    (rest_ = WANTED[at_ + strlen(key) + 2:*], rest_[1:strstrt(rest_, " ") - 1]))

has(list, word) = strstrt(" ".list." ", " ".word." ") > 0
add(list, word) = has(list, word) ? list : list eq "" ? word : list." ".word
place(list, word) = has(list, word) ? words(list[1:strstrt(" ".list." ", " ".word." ")]) : 0
number(text) = text eq "NA" || text eq "" ? NaN : real(text)

# Okabe and Ito's colours; every kernel also has its own point and dash, for print in grey.
KNOWN = "stock patched patched_fine sort exact floor log log1p fp64 murmur"
COLORS = "0xD55E00 0x0072B2 0x56B4E9 0x009E73 0xCC79A7 0x000000 0xD55E00 0x0072B2 0x009E73 0xCC79A7"
POINTS = "7 5 9 13 11 0 7 5 13 11"
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
    verdict eq "unsupported" ? "U" : verdict eq "rejected" ? "R" : "O"
STATES = "R U O N 0 -"
state_text(s) = s eq "R" ? "R rejected" : s eq "U" ? "U unsupported" : s eq "O" ? "O oracle undecided" : \
    s eq "N" ? "N not measured" : s eq "0" ? "0 is zero: no place on a log axis" : "- not in this run"

# SVG for the page and the browser, PNG for everything else. Titles stand as they are.
is_png = strlen(OUT) > 4 && OUT[strlen(OUT) - 3:*] eq ".png"
start(width, height) = is_png \
    ? sprintf("set terminal pngcairo noenhanced size %d,%d font 'sans-serif,11' background '#ffffff'", width, height) \
    : sprintf("set terminal svg noenhanced size %d,%d font 'sans-serif,12' background '#ffffff'", width, height)

set style line 100 lc rgb "#d9d9d9" lw 0.6
set border 3 lc rgb "#555555"
set tics nomirror out scale 0.6
set grid back ls 100
unset key
