//! What decoding shows of encodings.

use std::collections::BTreeSet;

use fxscope_aarch64::coverage::{Coverage, Execution, NOT_COMPARED, PARTLY_COMPARED, fields, of};
use fxscope_aarch64::table::encodings;

fn named(name: &str) -> Coverage {
    of(encodings().find(|row| row.name == name).expect(name)).expect("decodes")
}

#[test]
fn fields_are_those_of_the_pattern() {
    assert_eq!(fields("sf:1 0 0 100010 sh:1 imm12:12 rn:5 rd:5"), [(31, 1), (22, 1), (10, 12), (5, 5), (0, 5)]);
    for row in encodings() {
        let operands = fields(row.notation).into_iter().map(|(low, width)| (u32::MAX >> (32 - width)) << low);
        let all = operands.fold(row.pattern.mask, |all, bits| {
            assert_eq!(all & bits, 0, "{}: a field overlaps another or fixed bits", row.name);
            all | bits
        });
        let any = row.notation.split(' ').filter(|part| !part.contains(':')).flat_map(str::chars).filter(|&c| c == 'x');
        assert_eq!(all.count_zeros() as usize, any.count(), "{}", row.name);
    }
}

#[test]
fn classes_that_depend_on_operands_are_all_found() {
    let expected = [
        "base:ADD (shifted register) [LSL 1-4]",
        "base:ADD (shifted register) [amount 0]",
        "base:ADD (shifted register) [otherwise]",
    ];
    assert_eq!(named("ADD (shifted register)").classes, BTreeSet::from(expected));
    // Few of the 4,096 pairs of field values.
    let rare = ["base:UBFM [zero-extend word]", "base:UBFM [shift 1-4]"];
    assert!(rare.iter().all(|class| named("UBFM").classes.contains(class)));
}

#[test]
fn instructions_that_user_code_may_not_execute_are_recognised() {
    assert_eq!(named("HVC").execution, Execution::Never);
    assert_eq!(named("MRS").execution, Execution::Sometimes);
    assert_eq!(named("DC ZVA").execution, Execution::Always);
}

#[test]
fn rows_with_a_stated_reason_exist() {
    for (name, reason) in NOT_COMPARED.iter().chain(PARTLY_COMPARED) {
        assert!(encodings().any(|row| row.name == *name), "{name}: {reason}");
    }
}

/// Takes seconds of processor time.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn every_encoding_has_words_that_decode() {
        let none: Vec<_> = encodings().filter(|row| of(row).is_none()).map(|row| row.name).collect();
        assert!(none.is_empty(), "{none:?}");
    }
}
