//! Numbers as tools write them in any locale: groups of digits, decimal point or comma, exponents.
//!
//! A mark followed by three digits, such as that of `1.234`, may separate groups or decimals. The other numbers of a file
//! decide which; where none does, the number is refused.

/// Largest number of significant digits that are read exactly.
const EXACT_DIGITS: usize = 19;

/// What the point and the comma mean in a file, as far as its numbers show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    decimal: Option<char>,
    groups: Option<char>,
}

/// A count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    /// The nearest integer.
    pub value: u64,
    /// Why the value is not exact, if it is not.
    pub inexact: Option<Inexact>,
}

/// Why a count is not exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Inexact {
    /// It had a fraction, as means have.
    Fraction,
    /// It has an exponent and fewer digits than the count: a program has rounded it.
    Rounded,
}

/// Why a text is not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It is no number, or its digits are grouped inconsistently.
    NoNumber,
    /// Its mark may separate groups or decimals.
    Ambiguous,
    /// It is negative.
    Negative,
}

/// What separates the last digits of a number from those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Nothing,
    Group(char),
    Decimal(char),
    Either(char),
}

/// A number by its parts.
#[derive(Clone, Copy)]
struct Parts<'a> {
    negative: bool,
    /// The digits, with separators between.
    digits: &'a str,
    last: Last,
    /// The separator of groups before the last digits.
    groups: Option<char>,
    exponent: i32,
    has_exponent: bool,
}

impl Marks {
    /// Returns what the numbers among these words show. Words that contradict each other show nothing.
    pub(crate) fn of<'a>(words: impl Iterator<Item = &'a str>) -> Marks {
        let (mut decimal, mut groups) = (Vec::new(), Vec::new());
        for parts in words.filter_map(parts) {
            match parts.last {
                Last::Decimal(mark) => decimal.push(mark),
                Last::Group(mark) => groups.push(mark),
                Last::Nothing | Last::Either(_) => {}
            }
            groups.extend(parts.groups);
        }
        let only = |marks: &[char], others: &[char]| {
            let mut found = ['.', ','].into_iter().filter(|mark| marks.contains(mark));
            let first = found.next().filter(|mark| !others.contains(mark))?;
            found.next().is_none().then_some(first)
        };
        Marks { decimal: only(&decimal, &groups), groups: only(&groups, &decimal) }
    }

    /// Returns whether a mark that may be either separates decimals; `None` if the file does not show it.
    fn is_decimal(self, mark: char) -> Option<bool> {
        match (self.decimal, self.groups) {
            (Some(decimal), _) => Some(decimal == mark),
            (None, Some(groups)) => Some(groups != mark),
            (None, None) => None,
        }
    }

    /// Reads a count: a number that is not negative, rounded to the nearest integer.
    pub(crate) fn count(self, text: &str) -> Result<Count, Refusal> {
        let parts = parts(text.trim()).ok_or(Refusal::NoNumber)?;
        if parts.negative {
            return Err(Refusal::Negative);
        }
        let decimals = self.decimals(&parts)?;
        let digits: String = parts.digits.chars().filter(char::is_ascii_digit).collect();
        let shift = parts.exponent - i32::try_from(decimals).map_err(|_| Refusal::NoNumber)?;
        let value = shifted(&digits, shift).ok_or(Refusal::NoNumber)?;
        let significant = digits.trim_start_matches('0').len();
        let written = value.checked_ilog10().map_or(1, |log| log as usize + 1);
        let inexact = if parts.has_exponent && written > significant {
            Some(Inexact::Rounded)
        } else if has_fraction(&digits, shift) {
            Some(Inexact::Fraction)
        } else {
            None
        };
        Ok(Count { value, inexact })
    }

    /// Reads a number that may have a fraction, such as a time in seconds.
    pub(crate) fn real(self, text: &str) -> Result<f64, Refusal> {
        let parts = parts(text.trim()).ok_or(Refusal::NoNumber)?;
        let decimals = self.decimals(&parts)?;
        let digits: String = parts.digits.chars().filter(char::is_ascii_digit).collect();
        let (whole, fraction) = digits.split_at(digits.len() - decimals);
        let sign = if parts.negative { "-" } else { "" };
        format!("{sign}{whole}.{fraction}e{}", parts.exponent).parse().map_err(|_| Refusal::NoNumber)
    }

    /// Returns the number of digits after the decimal mark.
    fn decimals(self, parts: &Parts<'_>) -> Result<usize, Refusal> {
        let after = || parts.digits.len() - parts.digits.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
        match parts.last {
            Last::Nothing | Last::Group(_) => Ok(0),
            Last::Decimal(_) => Ok(after()),
            Last::Either(mark) => match self.is_decimal(mark) {
                Some(true) => Ok(after()),
                Some(false) => Ok(0),
                None => Err(Refusal::Ambiguous),
            },
        }
    }
}

/// Returns whether a text is a number, whatever its marks mean.
pub(crate) fn is_number(text: &str) -> bool {
    parts(text.trim()).is_some()
}

/// Splits a text into the number that it begins with, which may contain single blanks between groups, and the rest.
pub(crate) fn leading(text: &str) -> Option<(&str, &str)> {
    let mut best = None;
    let ends = text.char_indices().filter(|(_, c)| c.is_whitespace()).map(|(at, _)| at).chain([text.len()]);
    for end in ends {
        // Groups continue a number only without a gap.
        if parts(&text[..end]).is_none() {
            break;
        }
        best = Some(end);
    }
    best.map(|end| text.split_at(end))
}

/// Splits a text into the words of digits that it begins with, which are no number together, and the rest, which begins with a name. `None`
/// for any other text: what stands where a count is expected is refused, not taken for another line.
pub(crate) fn damaged(text: &str) -> Option<(&str, &str)> {
    let name = text
        .char_indices()
        .find(|&(_, c)| !(c.is_ascii_digit() || separates_groups(c) || matches!(c, '.' | ',' | '\t')));
    let (end, _) = name.filter(|&(_, c)| c.is_alphabetic() || c == '_')?;
    let digits = &text[..end];
    let whole = digits.trim_end();
    let is_word = whole.len() < digits.len() && whole.starts_with(|c: char| c.is_ascii_digit());
    (is_word && !is_number(whole)).then_some((whole, &text[whole.len()..]))
}

/// Returns whether a character separates groups of digits and nothing else.
fn separates_groups(c: char) -> bool {
    c.is_whitespace() && c != '\t' && c != '\n' || matches!(c, '\'' | '\u{2019}' | '\u{2018}' | '\u{2bc}')
}

/// Takes a number apart; `None` if the text is none.
fn parts(text: &str) -> Option<Parts<'_>> {
    let (negative, rest) = match text.strip_prefix(['-', '\u{2212}']) {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (digits, exponent) = match rest.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, Some(exponent.parse::<i32>().ok().filter(|e| e.abs() < 400)?)),
        None => (rest, None),
    };
    let (last, groups) = separators(digits, exponent.is_some())?;
    let has_exponent = exponent.is_some();
    Some(Parts { negative, digits, last, groups, exponent: exponent.unwrap_or(0), has_exponent })
}

/// Finds what the separators between digits are.
fn separators(digits: &str, has_exponent: bool) -> Option<(Last, Option<char>)> {
    let runs: Vec<&str> = digits.split(|c: char| !c.is_ascii_digit()).collect();
    let marks: Vec<char> = digits.chars().filter(|c| !c.is_ascii_digit()).collect();
    if runs.iter().any(|run| run.is_empty()) || !marks.iter().all(|&c| separates_groups(c) || matches!(c, '.' | ',')) {
        return None;
    }
    let Some((&last, before)) = marks.split_last() else { return Some((Last::Nothing, None)) };
    let mark = matches!(last, '.' | ',');
    match before.split_first() {
        None if !mark => are_groups(&runs).then_some((Last::Group(last), None)),
        None if has_exponent || !are_groups(&runs) => Some((Last::Decimal(last), None)),
        None => Some((Last::Either(last), None)),
        Some((&first, others)) if others.iter().all(|&c| c == first) => match last == first {
            true => are_groups(&runs).then_some((Last::Group(last), None)),
            false if mark => are_groups(&runs[..runs.len() - 1]).then_some((Last::Decimal(last), Some(first))),
            false => None,
        },
        Some(_) => None,
    }
}

/// Returns whether these are groups of three digits, or Indian ones: three last, two before each.
fn are_groups(runs: &[&str]) -> bool {
    let [first, middle @ .., last] = runs else { return false };
    let of = |length: usize| middle.iter().all(|run| run.len() == length);
    let indian = !middle.is_empty() && first.len() <= 2 && of(2);
    !first.starts_with('0') && last.len() == 3 && (first.len() <= 3 && of(3) || indian)
}

/// The digits times a power of ten, rounded to the nearest integer, halves to even; `None` if it is too large.
fn shifted(digits: &str, shift: i32) -> Option<u64> {
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(0);
    }
    if shift >= 0 {
        let zeros = usize::try_from(shift).ok().filter(|zeros| digits.len() + zeros <= EXACT_DIGITS + 1)?;
        return format!("{digits}{}", "0".repeat(zeros)).parse().ok();
    }
    let cut = usize::try_from(-shift).ok()?;
    let Some(at) = digits.len().checked_sub(cut) else { return Some(0) };
    let (whole, fraction) = digits.split_at(at);
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let half = std::iter::once('5').chain(std::iter::repeat('0')).take(fraction.len()).collect::<String>();
    let up = fraction > half.as_str() || fraction == half && whole % 2 == 1;
    whole.checked_add(u64::from(up))
}

/// Returns whether the digits times a power of ten are no integer.
fn has_fraction(digits: &str, shift: i32) -> bool {
    let zeros = digits.len() - digits.trim_end_matches('0').len();
    shift < 0 && zeros < usize::try_from(-shift).unwrap_or(usize::MAX) && digits.bytes().any(|b| b != b'0')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NONE: Marks = Marks { decimal: None, groups: None };

    fn count(text: &str) -> Result<u64, Refusal> {
        NONE.count(text).map(|count| count.value)
    }

    #[test]
    fn groups_by_one_consistent_separator_are_one_number() {
        let texts = [
            "2000000",
            "2,000,000",
            "2.000.000",
            "2 000 000",
            "2'000'000",
            "2\u{2019}000\u{2019}000",
            "2\u{a0}000\u{a0}000",
            "2\u{202f}000\u{202f}000",
            "2\u{2009}000\u{2009}000",
            "20,00,000",
            "2,000,000.000000",
            "2.000.000,0",
            "2.0E+6",
            "2,0e6",
        ];
        for text in texts {
            assert_eq!(count(text), Ok(2_000_000), "{text}");
        }
    }

    #[test]
    fn inconsistent_groups_are_no_number() {
        for text in
            ["2,00,00", "2,0000,000", "2 000,000 000", "2,000.000.000", "0,000,000", "2,,000", ",5", "5,", "1 2", ""]
        {
            assert_eq!(count(text), Err(Refusal::NoNumber), "{text}");
        }
        assert_eq!(count("-5"), Err(Refusal::Negative));
    }

    #[test]
    fn decimals_are_rounded_never_dropped() {
        assert_eq!(count("2000000.333333"), Ok(2_000_000));
        assert_eq!(count("2000000,666667"), Ok(2_000_001));
        assert_eq!(count("2000000.50"), Ok(2_000_000));
        assert_eq!(count("2000001.50"), Ok(2_000_002));
        assert_eq!(count("0.4"), Ok(0));
        assert_eq!(NONE.count("5.25").map(|c| c.inexact), Ok(Some(Inexact::Fraction)));
        assert_eq!(NONE.count("4.01E+10"), Ok(Count { value: 40_100_000_000, inexact: Some(Inexact::Rounded) }));
        assert_eq!(NONE.count("4.01E+2"), Ok(Count { value: 401, inexact: None }));
        assert_eq!(count("1e400"), Err(Refusal::NoNumber));
        assert_eq!(count("99999999999999999999"), Err(Refusal::NoNumber));
        assert_eq!(count("18446744073709551615"), Ok(u64::MAX));
    }

    #[test]
    fn a_mark_before_three_digits_means_what_the_other_numbers_of_the_file_show() {
        assert_eq!(count("1.234"), Err(Refusal::Ambiguous));
        let read = |words: &str, text: &str| Marks::of(words.split(' ')).real(text);
        for (words, value) in [("0.5", 1.234), ("0,5", 1234.0), ("2.000.000", 1234.0), ("2,000,000", 1.234)] {
            assert_eq!(read(words, "1.234"), Ok(value), "{words}");
        }
        assert_eq!(read("0.5 0,5", "1.234"), Err(Refusal::Ambiguous));
        assert_eq!(read("0.5 cycles", "1,234"), Ok(1234.0));
    }

    #[test]
    fn a_number_ends_where_its_groups_end() {
        assert_eq!(leading("2 000 000      cycles"), Some(("2 000 000", "      cycles")));
        assert_eq!(leading("2 000 000"), Some(("2 000 000", "")));
        assert_eq!(leading("12 cycles"), Some(("12", " cycles")));
        assert_eq!(leading("12 3456"), Some(("12", " 3456")));
        assert_eq!(leading("cycles"), None);
    }

    #[test]
    fn digits_before_a_name_that_are_no_number_are_damaged() {
        assert_eq!(damaged("20,01,2,34      cycles"), Some(("20,01,2,34", "      cycles")));
        assert_eq!(damaged("2 000,000 000 cycles"), Some(("2 000,000 000", " cycles")));
        assert_eq!(damaged("12 3456 r11"), Some(("12 3456", " r11")));
        for text in [
            "2,000 cycles",
            "2 000",
            "12 34",
            "7z-12 5 cycles",
            "3rd pass",
            "2026-11-28 12:00 done",
            "12,34 %",
            "cycles",
            "",
        ] {
            assert_eq!(damaged(text), None, "{text}");
        }
    }

    /// Writes digits in groups of three, or of two after the last three.
    fn grouped(value: u64, separator: &str, indian: bool) -> String {
        let digits = value.to_string();
        let mut text = String::new();
        for (i, digit) in digits.chars().enumerate() {
            let left = digits.len() - i;
            let begins = if indian { left == 3 || left > 3 && left % 2 == 1 } else { left.is_multiple_of(3) };
            if i > 0 && begins {
                text.push_str(separator);
            }
            text.push(digit);
        }
        text
    }

    proptest! {
        #[test]
        fn a_number_printed_in_any_locale_reads_back_as_itself(
            value in any::<u64>(),
            bits in 0u32..64,
            style in proptest::sample::select(vec![
                (",", '.', false), (".", ',', false), ("'", '.', false), ("\u{2019}", '.', false), (" ", ',', false),
                ("\u{a0}", ',', false), ("\u{202f}", ',', false), ("\u{2009}", ',', false), ("", '.', false),
                ("", ',', false), (",", '.', true),
            ]),
            fraction in proptest::option::of("0{1,6}"),
        ) {
            let (separator, mark, indian) = style;
            let value = value >> bits;
            let mut text = grouped(value, separator, indian);
            if let Some(zeros) = &fraction {
                text.push(mark);
                text.push_str(zeros);
            }
            // Another number of the same file.
            let other = format!("0{mark}25");
            let marks = Marks::of([text.as_str(), &other].into_iter());
            prop_assert_eq!(marks.count(&text), Ok(Count { value, inexact: None }), "{}", text);
            let line = format!("{text}  cycles");
            prop_assert_eq!(leading(&line), Some((text.as_str(), "  cycles")));
        }

        #[test]
        fn any_text_is_a_number_or_is_not(text in "[-+0-9.,'eE \u{a0}\u{202f}x]{0,24}") {
            let _ = (NONE.count(&text), NONE.real(&text), leading(&text));
        }
    }
}
