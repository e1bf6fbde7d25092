//! Annotations for display and as JSON.

use crate::common;

use common::{region, run};
use fxscope_record::ALL;
use fxscope_report::annotate::{Annotation, Code, Flow, Function, Instruction, MicroOp, Source, document, json, pipes};
use fxscope_report::render::terminal::{Style, render};

fn flow(pipes: &[&'static str], all: bool) -> Flow {
    Flow { pipes: pipes.to_vec(), all, latency: 1, busy: 1 }
}

fn uop(flows: Vec<Flow>) -> MicroOp {
    MicroOp { flows, independent: false }
}

const INSTRUCTION: &str = "st4d {z0.d, z1.d, z2.d, z3.d}, p0, [x0, #-32, mul vl]";

/// The rows of the instruction in `text`, with blanks collapsed.
fn instruction(text: &str) -> String {
    let rows = text.lines().skip_while(|l| !l.ends_with("kernel.c:42")).skip(1);
    let rows =
        rows.enumerate().take_while(|(i, l)| *i == 0 || l.starts_with("       ")).flat_map(|(_, l)| l.split(' '));
    rows.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// One instruction with everything known, one with nothing.
pub fn annotation() -> Annotation {
    let store = MicroOp { flows: vec![flow(&["EAGA", "EAGB"], false), flow(&["FLA"], false)], independent: true };
    let known = Instruction {
        address: 0x40_0104,
        offset: 4,
        executions: 1_000_000,
        cycles: 1_500_000,
        in_flight: 12_500_000,
        stalls: vec![400_000, 700_000],
        pipes: vec![250_000, 750_000, 0],
        events: Vec::new(),
        loops: Vec::new(),
        producer: None,
        source: Some(Source { file: "folder/".repeat(20) + "kernel.c", line: 42, text: None }),
        code: Some(Code { word: 0xe5e0_4000, text: Some(INSTRUCTION.to_owned()), uops: vec![store] }),
    };
    let unknown = Instruction { address: 0x40_0108, offset: 8, executions: 1, ..Instruction::default() };
    let named = Function {
        name: "kernel\x1b[2J".to_owned(),
        file: Some("libkernel.so".to_owned()),
        address: 0x40_0100,
        cycles: 1_500_000,
        executions: 1_000_001,
        stalls: vec![400_000, 700_000],
        instructions: Some(vec![known, unknown]),
    };
    let others = (0..30).map(|i| Function { address: i, cycles: 10, executions: 7, ..Function::default() });
    let functions = std::iter::once(named).chain(others).collect();
    let notes = vec!["Something.".to_owned()];
    Annotation { code: None, cycles: 2_000_000, outside: 499_700, commit_width: 4, functions, notes }
}

fn text(style: Style) -> String {
    render(&[document(&run("kernel.elf", vec![region(ALL, 1, 10)]), &annotation())], style)
}

#[test]
fn lines_fit_in_100_columns_without_control_characters() {
    for unicode in [false, true] {
        let text = text(Style { unicode, colour: false, width: 100, cuts: true });
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(!text.contains('\x1b'), "{text}");
        assert!(unicode || text.replace('\u{fffd}', "").is_ascii(), "{text}");
    }
}

#[test]
fn colours_change_nothing_but_colours() {
    let mut coloured = text(Style { unicode: true, colour: true, width: 100, cuts: true });
    for code in ["\x1b[1m", "\x1b[32m", "\x1b[33m", "\x1b[0m"] {
        coloured = coloured.replace(code, "");
    }
    assert_eq!(coloured, text(Style { unicode: true, colour: false, width: 100, cuts: true }));
}

#[test]
fn further_functions_and_cycles_outside_have_one_line_each() {
    let text = text(Style { unicode: true, colour: false, width: 100, cuts: true });
    assert!(text.lines().any(|l| l.contains("(11 other functions)") && l.contains(" 110 ")), "{text}");
    assert!(text.lines().any(|l| l.contains("(system calls and waiting)") && l.contains("499.7 k")), "{text}");
}

#[test]
fn instructions_show_line_cycles_time_in_flight_longest_wait_and_pipes() {
    let text = text(Style { unicode: true, colour: false, width: 100, cuts: true });
    let row = instruction(&text);
    // 700,000 of 1,500,000 cycles; pipes as used.
    for part in ["+0x4", "1.000 M", " 1.500 ", " 12.50 ", "branch 47", INSTRUCTION, "EAGB 75 EAGA 25"] {
        assert!(row.contains(part), "{part} in {text}");
    }
}

#[test]
fn json_has_null_for_unknown_values_and_instructions_only_on_request() {
    let json = json(&run("kernel.elf", vec![region(ALL, 1, 10)]), &annotation());
    let functions = json["functions"].as_array().expect("a list");
    assert_eq!(functions.len(), 31);
    assert!(functions[1].get("instructions").is_none());
    let list = &functions[0]["instructions"];
    assert_eq!(list[0]["cycles_per_execution"], 1.5);
    assert_eq!(list[0]["line"], 42);
    assert_eq!(list[0]["uops"][0]["flows"][0]["pipes"], serde_json::json!(["EAGA", "EAGB"]));
    assert_eq!(list[0]["issue_to_commit"], 12.5);
    assert_eq!(list[0]["stalls"], serde_json::json!({"BR_COMP_WAIT": 700_000, "FL_COMP_WAIT": 400_000}));
    assert_eq!(list[0]["pipes"], serde_json::json!({"EAGB": 750_000, "EAGA": 250_000}));
    for key in ["file", "line", "word", "text", "uops"] {
        assert!(list[1][key].is_null(), "{key}");
    }
}

#[test]
fn a_functions_stall_causes_are_listed_with_their_events() {
    let text = text(Style { unicode: true, colour: false, width: 100, cuts: true });
    let line = text.lines().find(|l| l.contains("BR_COMP_WAIT")).expect("the longest");
    for part in ["branch", "700.0 k", "46.7 %", "Branch wait"] {
        assert!(line.contains(part), "{part} in {line}");
    }
}

#[test]
fn a_record_without_causes_and_pipes_shows_the_machines_pipes() {
    let mut run = run("kernel.elf", vec![region(ALL, 1, 10)]);
    (run.stalls, run.pipes) = (Vec::new(), Vec::new());
    let text = render(&[document(&run, &annotation())], Style { unicode: true, colour: false, width: 100, cuts: true });
    let row = instruction(&text);
    assert!(row.contains("EAG*,FLA") && !row.contains("12.50"), "{text}");
    let json = json(&run, &annotation());
    assert!(json["functions"][0]["instructions"][0]["issue_to_commit"].is_null());
}

#[test]
fn pipes_use_the_manuals_notation_with_a_star_for_both_of_a_kind() {
    let all = flow(&["EXA", "EXB", "EAGA", "EAGB"], false);
    assert_eq!(pipes(&[uop(vec![all])]), "EX*|EAG*");
    assert_eq!(pipes(&[uop(vec![flow(&["FLA", "PRX"], true)])]), "FLA&PRX");
    assert_eq!(pipes(&[uop(vec![flow(&["EXA"], false), flow(&["FLA", "FLB"], false)])]), "EXA+FL*");
    let load = uop(vec![flow(&["EAGA", "EAGB"], false)]);
    assert_eq!(pipes(&[load.clone(), load, uop(vec![flow(&["EXB"], false)])]), "(EAG*)x2/EXB");
    assert_eq!(pipes(&[uop(Vec::new())]), "", "a micro-operation without pipes");
}
