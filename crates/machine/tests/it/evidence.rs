//! Every value says how well it is known and where it comes from.

use std::fs;
use std::path::PathBuf;

use fxscope_machine::{
    Evidence, Provenance, Spec, check_evidence, evidence_summary, hash, load, load_bytes, names, row_summary, show,
    show_assumed,
};

fn built_in(name: &str) -> Spec {
    load(name, &[]).unwrap_or_else(|e| panic!("{e}"))
}

fn extended(text: &str) -> Spec {
    load_bytes(format!("extends = \"a64fx\"\n{text}").as_bytes(), None, &[]).unwrap_or_else(|e| panic!("{e}"))
}

fn of<'a>(spec: &'a Spec, key: &str) -> &'a Provenance {
    spec.provenance_of(key).unwrap_or_else(|| panic!("there is no key {key}"))
}

/// A machine with a load-to-use latency of its own for one class; `columns` and `cells` follow those that must be there.
fn with_a_row(folder: &str, tables: &str, columns: &str, cells: &str) -> Spec {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("evidence").join(folder);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("machine.toml"), format!("extends = \"a64fx\"\n{tables}")).unwrap();
    let header = "class,vl_bits,uops,pipes,latency,blocking,decode_notes,fetch_ports,store_ports";
    fs::write(folder.join("instructions.csv"), format!("{header}{columns}\nbase:ADC,,1,EX*,3,,,,{cells}\n")).unwrap();
    load(folder.to_str().unwrap(), &[]).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn every_key_of_every_built_in_machine_has_evidence_and_a_source() {
    for name in names() {
        let spec = built_in(name);
        for entry in spec.entries() {
            let (key, provenance) = (entry.name(), entry.provenance);
            let evidence = provenance.evidence.unwrap_or_else(|| panic!("{name}: {key} has no evidence"));
            assert!(!provenance.source.is_empty(), "{name}: {key} has no source");
            let settled = !provenance.would_close.is_empty();
            assert!(!evidence.is_open() || settled, "{name}: {key} does not say what would close it");
        }
        check_evidence(&spec).unwrap();
    }
}

#[test]
fn what_rests_on_assumption_or_fit_is_listed_and_nothing_else() {
    let spec = built_in("a64fx");
    let text = show_assumed(&spec);
    let listed: Vec<&str> = text
        .lines()
        .filter(|l| l.contains(" = ") && !l.starts_with(' '))
        .map(|l| l.split(" = ").next().unwrap())
        .collect();
    let open = |p: &Provenance| matches!(p.evidence, Some(Evidence::Fitted | Evidence::Assumed));
    let expected: Vec<String> = spec.entries().filter(|e| open(e.provenance)).map(|e| e.name()).collect();
    assert_eq!(listed, expected);
    assert!(listed.contains(&"load_store.write_buffer_moves") && !listed.contains(&"frontend.fetch_bytes"));
    let moves = text.split("\n\n").find(|entry| entry.starts_with("load_store.write_buffer_moves")).unwrap();
    assert!(moves.starts_with("load_store.write_buffer_moves = 2 stores (fitted)\n"), "{moves}");
    for part in ["source:      access-0058", "why:         MM 7.4", "would close: stores of one byte"] {
        assert!(moves.contains(part), "{moves}");
    }
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "wider than a terminal: {line}");
    }
}

#[test]
fn a_value_and_its_evidence_are_shown_in_one_line_below_its_meaning() {
    let text = show(&built_in("a64fx"));
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.starts_with("fetch_bytes = ")).unwrap();
    assert_eq!(lines[at - 1], "# Bytes of one aligned fetch block; in bytes; a power of two from 4 to 256");
    assert!(lines.contains(&"# Vector length, bits; one of 128, 256, 512"), "a unit is named once");
    assert!(lines[at].starts_with("fetch_bytes = { value = 32, evidence = \"documented\", source = \"MM 2.1"));
}

#[test]
fn evidence_is_counted_by_key() {
    let count = |spec: &Spec, evidence| evidence_summary(spec).into_iter().find(|(e, _)| *e == evidence).unwrap().1;
    let plain = built_in("a64fx");
    let changed = load("a64fx", &[("l1d.ways".to_owned(), "4".to_owned())]).unwrap();
    assert_eq!(evidence_summary(&plain).iter().map(|(_, n)| n).sum::<usize>(), plain.entries().count());
    assert_eq!(count(&plain, Evidence::Set), 0);
    assert_eq!(count(&changed, Evidence::Set), 1, "one key was set, of a table of five");
    assert_eq!(count(&changed, Evidence::Documented) + 1, count(&plain, Evidence::Documented));
    let rows = row_summary(&plain);
    assert_eq!(rows[0], (Evidence::Documented, plain.recipes.sorted().len()));
}

#[test]
fn a_setting_counts_as_set_by_the_user() {
    let settings = [("l2.bytes".to_owned(), "16MiB".to_owned())];
    let spec = load("a64fx", &settings).unwrap();
    let set = of(&spec, "l2.bytes");
    assert_eq!((set.evidence, set.source.as_str()), (Some(Evidence::Set), "--set l2.bytes=16MiB"));
    assert_eq!(of(&spec, "l2.ways"), of(&built_in("a64fx"), "l2.ways"), "its neighbours keep theirs");
    check_evidence(&spec).unwrap();
}

#[test]
fn a_table_states_evidence_for_its_keys_and_a_key_may_state_its_own() {
    let spec = extended(
        "[memory]\nevidence = \"assumed\"\nsource = \"a talk\"\nwould_close = \"a chase\"\nlatency_nearest = 300\n\
         latency_farthest = { value = 330, evidence = \"measured\" }\n",
    );
    let near = of(&spec, "memory.latency_nearest");
    assert_eq!(near.texts(), [("source", "a talk"), ("why", ""), ("would_close", "a chase")]);
    let far = of(&spec, "memory.latency_farthest");
    assert_eq!((far.evidence, far.source.as_str()), (Some(Evidence::Measured), "a talk"));
    assert_eq!(far.would_close, "", "what would close an assumption says nothing about a measurement");
    assert_eq!(of(&spec, "memory.write_cost"), of(&built_in("a64fx"), "memory.write_cost"), "inherited");
}

#[test]
fn a_machine_says_how_well_it_knows_the_values_that_it_inherits() {
    let spec = extended(
        "[inherited]\nevidence = \"assumed\"\nsource = \"as A64FX\"\n[prefetch.inherited]\nsource = \"a guess\"\n\
         [l2.ways]\nvalue = 16\nevidence = \"documented\"\nsource = \"a datasheet\"\n",
    );
    let known = |key: &str| (of(&spec, key).evidence.unwrap(), of(&spec, key).source.as_str());
    assert_eq!(known("l2.ways"), (Evidence::Documented, "a datasheet"));
    assert_eq!(known("l2.bytes"), (Evidence::Assumed, "as A64FX"));
    assert_eq!(known("prefetch.queue"), (Evidence::Assumed, "a guess"));
    assert_eq!(row_summary(&spec)[3], (Evidence::Assumed, spec.recipes.sorted().len()));
    assert_eq!(hash(&spec), hash(&built_in("a64fx")), "evidence changes no result");
}

#[test]
fn a_machine_without_evidence_runs_and_does_not_pass_the_check() {
    let text = "[memory]\nlatency_nearest = 300\nlatency_farthest = 330\n";
    assert_eq!(
        check_evidence(&extended(text)).unwrap_err(),
        "memory.latency_nearest, memory.latency_farthest have no evidence; write it beside the value, latency_nearest = \
         { value = ..., evidence = \"assumed\", source = \"...\", would_close = \"...\" }, or into [memory] for all keys of \
         that table"
    );
    let assumed = format!("{text}evidence = \"assumed\"\nsource = \"a talk\"\n");
    let message = check_evidence(&extended(&assumed)).unwrap_err();
    assert!(message.starts_with("memory.latency_nearest, memory.latency_farthest have no would_close;"), "{message}");
    let message = check_evidence(&extended("[l2]\nways = 16\nevidence = \"measured\"\n")).unwrap_err();
    assert!(message.starts_with("l2.ways has no source;"), "{message}");
    assert!(show_assumed(&extended(text)).contains("latency_farthest = 330 cycles (no evidence)"));
}

#[test]
fn instruction_rows_state_evidence_in_a_column_or_once_in_machine_toml() {
    let own = |spec: &Spec| spec.recipes.named("base:ADC").unwrap().evidence;
    let column = with_a_row("column", "", ",evidence", ",measured");
    assert_eq!(own(&column), Some(Evidence::Measured));
    let once = with_a_row("once", "[instructions]\nevidence = \"fitted\"\nsource = \"a benchmark\"\n", "", "");
    assert_eq!(own(&once), Some(Evidence::Fitted));
    assert_eq!(once.recipes.named("base:ADCS").unwrap().evidence, Some(Evidence::Documented), "inherited");
    let nowhere = with_a_row("nowhere", "", "", "");
    let message = check_evidence(&nowhere).unwrap_err();
    assert!(
        message.starts_with("instructions.csv:2: base:ADC has no evidence; give it a column 'evidence'"),
        "{message}"
    );
}
