//! Files that one process writes for another.

use fxscope_checkpoint::parcel::{Label, ParcelError, digest, pack, unpack};

fn label() -> Label {
    Label { what: "counts".to_owned(), tool: "fxscope 1".to_owned(), number: 7, answers: Some([3; 32]) }
}

fn contents() -> Vec<u8> {
    (0..100_000u32).flat_map(|number| (number / 7).to_le_bytes()).collect()
}

#[test]
fn a_parcel_has_its_label_and_its_contents_in_less_space() {
    let file = pack(&label(), &contents()).expect("packed");
    assert!(file.len() < contents().len() / 4, "{}", file.len());
    assert_eq!(unpack(&file, "counts", "fxscope 1").expect("whole"), (label(), contents()));
    assert_eq!(digest(&file), digest(&pack(&label(), &contents()).expect("packed")));
    assert_ne!(digest(&file), digest(&pack(&label(), b"other").expect("packed")));
}

#[test]
fn damage_anywhere_is_detected() {
    let file = pack(&label(), &contents()).expect("packed");
    for place in (0..file.len()).step_by(1 + file.len() / 500) {
        let mut changed = file.clone();
        changed[place] ^= 0x10;
        let error = unpack(&changed, "counts", "fxscope 1").expect_err("detected");
        assert!(matches!(error, ParcelError::Damaged(_) | ParcelError::Format(_)), "{place}: {error}");
        assert!(matches!(unpack(&file[..place], "counts", "fxscope 1"), Err(ParcelError::Damaged(_))), "{place}");
    }
    assert!(unpack(&[], "counts", "fxscope 1").expect_err("empty").to_string().contains("is damaged"));
}

#[test]
fn another_kind_and_another_program_are_named() {
    let file = pack(&label(), &contents()).expect("packed");
    let said = |what, tool| unpack(&file, what, tool).expect_err("another").to_string();
    assert_eq!(said("an interval", "fxscope 1"), "holds counts, not an interval");
    assert_eq!(
        said("counts", "fxscope 2"),
        "was written by fxscope 1, and this is fxscope 2; use the same version everywhere"
    );
}
