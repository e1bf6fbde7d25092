//! The table of encodings, and how the decoder finds the row of a word.

use fxscope_aarch64::table::{Encoding, Pattern, encodings, lookup};

#[test]
fn patterns_read_fields_and_fixed_bits() {
    let p = Pattern::parse("sf:1 0 0 100010 sh:1 imm12:12 rn:5 rd:5");
    assert_eq!(p, Pattern { mask: 0x7f80_0000, value: 0x1100_0000 });
    assert!(p.matches(0x9100_0421));
}

/// Words tried with each value of the high bits.
const TRIES: u32 = 16;

#[test]
fn lookup_finds_the_row_of_words_with_any_high_bits() {
    // The decoder indexes rows by the eleven highest bits.
    let (high, low) = (0xffe0_0000, 0x001f_ffff);
    let mut found = 0;
    for row in encodings() {
        let matching = |word: u32| word & !row.pattern.mask | row.pattern.value;
        let highs = (0..1 << 11).map(|bits: u32| bits << 21).filter(|&bits| matching(bits) & high == bits);
        for bits in highs {
            // Among them the smallest, the largest, and some between.
            let lows = (0..TRIES).map(|i| if i == 1 { low } else { i.wrapping_mul(0x9e37_79b9) >> 11 });
            for word in lows.map(|low| matching(bits | low)).filter(|&word| row.matches(word)) {
                let name = lookup(word).map(|row| row.name);
                assert_eq!(name, Some(row.name), "{word:08x}");
                found += 1;
            }
        }
    }
    assert!(found > 50_000, "only {found} words");
}

#[test]
fn lookup_finds_no_row_for_words_that_belong_to_none() {
    let mut none = 0;
    for word in (0..1 << 14).map(|i: u32| i.wrapping_mul(0x9e37_79b9)) {
        let expected = encodings().find(|row| row.matches(word)).map(|row| row.name);
        assert_eq!(lookup(word).map(|row| row.name), expected, "{word:08x}");
        none += u32::from(expected.is_none());
    }
    assert!(none > 1000, "only {none} words");
}

#[test]
fn no_word_belongs_to_two_encodings() {
    let rows: Vec<_> = encodings().collect();
    let mut clashes = Vec::new();
    for (i, a) in rows.iter().enumerate() {
        for b in &rows[i + 1..] {
            if a.pattern.overlaps(&b.pattern) && !excluded(a, b) && !excluded(b, a) {
                clashes.push(format!("{} / {}", a.name, b.name));
            }
        }
    }
    assert!(clashes.is_empty(), "overlapping encodings:\n{}", clashes.join("\n"));
}

/// Returns whether an exception of `a` excludes every word it shares with `b`.
fn excluded(a: &Encoding, b: &Encoding) -> bool {
    let shared = Pattern { mask: a.pattern.mask | b.pattern.mask, value: a.pattern.value | b.pattern.value };
    a.except.iter().any(|e| e.contains(&shared))
}

#[test]
fn names_are_unique() {
    let mut names: Vec<_> = encodings().map(|e| e.name).collect();
    names.sort_unstable();
    let twice: Vec<_> = names.windows(2).filter(|w| w[0] == w[1]).map(|w| w[0]).collect();
    assert!(twice.is_empty(), "duplicate names: {twice:?}");
}
