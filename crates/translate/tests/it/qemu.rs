//! Random blocks of instructions, translated before they run for the first time, do what QEMU does, bit for bit. The cases are those
//! with which the tests of `fxscope-aarch64` hold the interpreter against QEMU.
//!
//! `FXSCOPE_DIFF_BLOCKS` (here for each vector length, default 60) and `FXSCOPE_DIFF_SEED` (default 1) set number and choice.

use std::env;

use fxscope_aarch64::coverage::not_compared;
use fxscope_aarch64::table::Encoding;
use fxscope_aarch64::{Cpu, Engine as _, Exit, Trap};
use fxscope_guestmem::Memory;
use fxscope_translate::Translator;

use crate::differential::blocks::block;
use crate::differential::machine::{Case, Machine, Outcome};
use crate::differential::qemu::Qemu;
use crate::differential::report;
use crate::differential::rng::Rng;

fn number(variable: &str, default: u64) -> u64 {
    env::var(variable).map_or(default, |text| text.parse().expect("a number"))
}

/// Executes the code at `cpu.pc`, translated before it runs for the first time, up to `end`; returns why it stopped before, and whether it was translated.
fn translate(cpu: &mut Cpu, mem: &mut Memory, end: u64, length: u64) -> (Option<Trap>, bool) {
    let mut engine: Translator<0> = Translator::new(cpu.vl);
    engine.find(cpu.pc, mem).expect("code");
    let (_, exit) = engine.run_until(cpu, mem, length);
    let trap = match exit {
        // The breakpoint behind the case.
        Exit::Trap(Trap::Breakpoint(_)) if cpu.pc == end => None,
        Exit::Trap(trap) => Some(trap),
        Exit::Done | Exit::Unknown => None,
    };
    (trap, engine.units() > 0)
}

fn compare(vl: usize) {
    let rows: Vec<&'static Encoding> =
        fxscope_aarch64::table::encodings().filter(|row| not_compared(row.name).is_none()).collect();
    let (qemu, mut machine) = (Qemu::new(&format!("translated{vl}")), Machine::new());
    let mut rng = Rng::new(number("FXSCOPE_DIFF_SEED", 1) << 8 | vl as u64, "translated");
    let count = number("FXSCOPE_DIFF_BLOCKS", 60);
    let cases: Vec<Case> = (0..count).map(|_| block(&rows, vl, &mut rng, &mut machine)).collect();
    let mut translated = 0;
    let ours: Vec<Outcome> = cases
        .iter()
        .map(|case| {
            let mut is_translated = false;
            let (outcome, _, broken) = machine.run_by(case, |cpu, mem| {
                let (trap, made) = translate(cpu, mem, case.end(), case.words.len() as u64);
                is_translated = made;
                trap
            });
            translated += u64::from(is_translated);
            assert_eq!(broken, None, "{:08x?}", case.words);
            outcome
        })
        .collect();
    for ((case, ours), theirs) in cases.iter().zip(&ours).zip(qemu.run(vl, &cases.iter().collect::<Vec<_>>())) {
        let infos = case.infos().expect("the cases decode");
        let differences = report::differences(case, ours, &theirs);
        assert!(differences.is_empty(), "{}", report::details(case, &infos, &differences));
    }
    // Blocks that write floating-point control or status are not translated.
    assert!(translated * 10 > count * 8, "only {translated} of {count} blocks were translated");
}

#[test]
fn translated_blocks_do_what_qemu_does_with_vectors_of_128_bits() {
    compare(16);
}

#[test]
fn translated_blocks_do_what_qemu_does_with_vectors_of_256_bits() {
    compare(32);
}

#[test]
fn translated_blocks_do_what_qemu_does_with_vectors_of_512_bits() {
    compare(64);
}
