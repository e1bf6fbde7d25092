//! Mistakes in machine files and settings give one clear message each: what, where, and what to do.

use std::fs;
use std::path::PathBuf;

use fxscope_machine::{load, load_bytes};

/// A fresh folder of this name with these files.
fn folder(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    for (file, text) in files {
        let file = folder.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    folder
}

fn message(tables: &str) -> String {
    load_bytes(tables.as_bytes(), None, &[]).unwrap_err().to_string()
}

fn setting(key: &str, value: &str) -> String {
    load("a64fx", &[(key.to_owned(), value.to_owned())]).unwrap_err().to_string()
}

#[test]
fn an_unknown_machine_is_answered_with_the_known_ones() {
    let message = |name| load(name, &[]).unwrap_err().to_string();
    assert_eq!(message("a64fz"), "no machine is called 'a64fz'; did you mean 'a64fx'?");
    assert_eq!(
        message("zen"),
        "no machine is called 'zen'; known are a64fx, fx1000, fugaku, fx700, k-computer, knl, knl-small; others are named by the path of a folder with a machine.toml"
    );
}

#[test]
fn a_hash_of_bits_within_a_line_is_refused() {
    assert_eq!(
        setting("l2_hash.fields", "[21, 7]"),
        "--set l2_hash.fields=[21, 7]: l2_hash.fields is [21, 7]; it must be bits from 8 on: lower ones are within a \
         line of l2.line_bytes, 256"
    );
}

#[test]
fn a_missing_or_unreadable_file_is_named_with_the_reason() {
    let missing = load("no/such/folder", &[]).unwrap_err().to_string();
    assert!(missing.starts_with("cannot read no/such/folder: there is no such file; give the path of"), "{missing}");
    let empty = folder("empty", &[]);
    let message = load(empty.to_str().unwrap(), &[]).unwrap_err().to_string();
    assert!(message.contains("empty/machine.toml: there is no such file"), "{message}");
    let nested = folder("nested", &[("machine.toml/file", "")]);
    assert!(load(nested.to_str().unwrap(), &[]).unwrap_err().to_string().contains("nested/machine.toml"));
}

#[cfg(unix)]
#[test]
fn a_file_without_permission_is_named_so() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder("locked", &[("machine.toml", "")]);
    let file = folder.join("machine.toml");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&file).is_ok() {
        return; // The superuser may read everything.
    }
    let message = load(folder.to_str().unwrap(), &[]).unwrap_err().to_string();
    assert!(message.ends_with("permission denied; make it readable for this user"), "{message}");
}

#[test]
fn bad_toml_is_reported_with_line_and_column() {
    let message = message("extends = \"a64fx\"\n[l2]\nbytes = 8 388\n");
    assert!(message.starts_with("machine.toml:3:"), "{message}");
    assert!(message.ends_with("; correct the TOML there"), "{message}");
    let twice = self::message("[l2]\nways = 1\nways = 2\n");
    assert!(twice.starts_with("machine.toml:3:1: duplicate key"), "{twice}");
}

#[test]
fn unknown_tables_and_keys_are_answered_with_the_nearest_known() {
    assert_eq!(message("[l2_timng]\n"), "machine.toml:1:2: there is no table 'l2_timng'; did you mean 'l2_timing'?");
    assert_eq!(
        message("extends = \"a64fx\"\n[memory]\n  latency_neerest = 300\n"),
        "machine.toml:3:3: table [memory] has no key 'latency_neerest'; did you mean 'latency_nearest'?"
    );
    assert_eq!(
        message("[l2]\nlatency_nearest = 300\n"),
        "machine.toml:2:1: table [l2] has no key 'latency_nearest'; the key belongs in [memory]"
    );
    assert_eq!(
        message("latency_nearest = 300\n"),
        "machine.toml:1:1: there is no table 'latency_nearest'; the key belongs in a table, such as [memory]"
    );
    assert!(message("[memory]\nzzz = 1\n").contains("its keys are latency_nearest, latency_farthest"));
}

#[test]
fn a_value_of_the_wrong_type_is_reported_with_what_is_expected() {
    let cases = [
        ("[l2]\nbytes = \"big\"", "2:9: l2.bytes is the text \"big\"; it must be a whole number, 0 or more"),
        ("[l2]\nways = -4", "2:8: l2.ways is -4; it must be a whole number from 0 to 4294967295"),
        ("[l2]\nways = 1.5", "2:8: l2.ways is 1.5; it must be a whole number"),
        ("[prefetch]\nl1 = 1", "2:6: prefetch.l1 is 1; it must be true or false"),
        (
            "[prefetch]\npolicy = \"nextline\"",
            "2:10: prefetch.policy is the text \"nextline\"; it must be one of stream, next_line",
        ),
        ("[l2]\nreplacement = 3", "2:15: l2.replacement is 3; it must be one of lru, fifo, tree_plru, random"),
        ("[bypass]\nflags = [1, 2]", "2:9: bypass.flags is a list of 2; it must be 5 whole numbers in square brackets"),
        ("[l2]\nevidence = \"sure\"", "it must be one of documented, measured, fitted, assumed, set"),
        ("[l2.ways]\nevidence = \"documented\"", "1:5: l2.ways has no value; write value = ... among its words"),
        ("[l2.ways]\nvalue = 1\nsorce = \"\"", "3:1: l2.ways has no part 'sorce'; did you mean 'source'?"),
        ("[l2.ways]\nvalue = \"many\"", "2:9: l2.ways is the text \"many\"; it must be a whole number"),
        ("[l2.inherited]\nvalue = 1", "2:1: l2.inherited has no part 'value'"),
        ("[inherited]\nsource = 3", "2:10: inherited.source is 3; it must be text in quotes"),
        ("l2 = 3", "1:1: 'l2' is a table, not a value; write its keys below a line [l2]"),
        ("extends = 3", "1:1: 'extends' is not text; give the name or path of a machine in quotes"),
    ];
    for (text, expected) in cases {
        let message = message(text);
        assert!(message.starts_with("machine.toml:") && message.contains(expected), "{message}");
    }
}

#[test]
fn missing_keys_are_named_with_their_tables() {
    let a64fx = fxscope_machine::show(&load("a64fx", &[]).unwrap());
    let lacking: String = a64fx
        .lines()
        .filter(|l| !l.starts_with("extends") && !l.starts_with("miss_detect"))
        .fold(String::new(), |text, line| text + line + "\n");
    let rows: &[u8] = b"class,vl_bits,uops,pipes,latency,blocking,decode_notes,fetch_ports,store_ports\n";
    let message = load_bytes(lacking.as_bytes(), Some(rows), &[]).unwrap_err().to_string();
    let both = "[l2_timing] miss_detect, [memory_side_cache] miss_detect";
    assert!(message.starts_with(&format!("machine.toml: the file lacks {both}; give them")), "{message}");
    let nothing = load_bytes(b"", Some(rows), &[]).unwrap_err().to_string();
    assert!(nothing.contains("lacks [identity] title, [identity] midr,") && nothing.contains("more keys"), "{nothing}");
}

#[test]
fn a_machine_without_instruction_rows_is_refused() {
    let message = message("[l2]\nways = 16\n");
    assert!(message.starts_with("machine.toml: no file gives the cost of instructions; put an instructions.csv"));
}

#[test]
fn values_that_are_not_allowed_are_named_with_place_key_and_limits() {
    assert_eq!(
        message("extends = \"a64fx\"\n[clock]\nvector_bits = 1024\n"),
        "machine.toml:3:1: clock.vector_bits is 1024; it must be one of 128, 256, 512 (Vector length, bits)"
    );
    let cases = [
        ("l2.line_bytes", "100", "a power of two from 64 to 4096"),
        ("l2.ways", "0", "from 1 to 16"),
        ("l2.bytes", "3MiB", "a power of two times 4096 (l2.ways times l2.line_bytes)"),
        ("l2.bytes", "1GiB", "at most 2097152 lines of 256 bytes"),
        ("l2.reserved_ways", "16", "less than l2.ways, 16"),
        ("l1d.line_bytes", "128", "lines have one size in all caches"),
        ("l2_timing.hit_farthest", "45", "at least l2_timing.hit_nearest, 46"),
        ("l2_timing.hit_nearest", "20", "at least 21"),
        ("memory.latency_farthest", "255", "at least memory.latency_nearest, 256"),
        ("memory.latency_nearest", "40", "at least 41"),
        ("memory.read_efficiency", "100.5", "from 1 to 100"),
        ("memory.read_efficiency", "nan", "from 1 to 100"),
        ("memory.write_cost", "inf", "from 0 to 16"),
        ("memory.peak_bytes_per_second", "90_000_000_000_000", "16 lines a cycle"),
        ("tlb.l2_only_sizes", "8MiB", "page sizes of the machine, each one of 4096, 65_536, 2_097_152"),
        ("pages.sizes", "[]", "pages.text is 65_536; it must be one of"),
        ("pages.heap", "8KiB", "one of 4096, 65_536, 2_097_152"),
        ("prefetch.l2_lines", "61", "from 0 to 60"),
        ("prefetch.l1_lines", "16", "from 0 to 15"),
        ("assumptions.divide_point", "101", "from 0 to 100"),
        ("window.commit_stack", "126", "a multiple of window.group_entries, 4"),
        ("window.dispatch_width", "5", "at most window.group_entries, 4"),
        ("tlb.l2_entries", "1023", "a multiple of tlb.l2_ways, 4"),
        ("tlb.granules", "[65536, 8192]", "one of 4096, 16_384, 65_536"),
        ("tlb.contiguous", "[32, 12]", "a power of two from 1 to 1024"),
        ("tlb.contiguous", "[32, 8]", "such that pages of 33554432 bytes are one descriptor or one contiguous group"),
        ("frontend.fetch_bytes", "256", "1 to 63 fetch blocks of 64"),
        ("load_store.fetch_ports", "4000000000", "from 1 to 4096"),
        ("bypass.flags", "[0, 0, 999, 0, 0]", "from 0 to 255"),
        ("identity.dczid", "10", "at most 9 in its low four bits"),
        ("sector_cache.l1_ways", "[1, 5, 0, 0]", "at most 4 for each sector: l1d.ways is 4"),
        ("sector_cache.l2_ways", "[33, 0]", "from 0 to 31"),
        ("sector_cache.mode", "2", "from 0 to 1"),
        ("hardware_barrier.cores", "11", "at least topology.cores_per_cmg, 12"),
        ("hardware_barrier.blades", "0", "from 1 to 256"),
    ];
    for (key, value, expected) in cases {
        let message = setting(key, value);
        assert!(message.starts_with(&format!("--set {key}={value}: ")), "{message}");
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn of_values_that_do_not_fit_together_the_changed_one_is_to_blame() {
    assert_eq!(
        setting("memory.latency_nearest", "300"),
        "--set memory.latency_nearest=300: memory.latency_farthest is 281; it must be at least \
         memory.latency_nearest, 300"
    );
    assert!(message("extends = \"a64fx\"\n[l2]\nways = 12\n").starts_with("machine.toml:3:1: l2.bytes is 8_388_608;"));
}

#[test]
fn ways_of_a_sector_that_no_cmg_has_are_refused_naming_both() {
    assert_eq!(
        setting("sector_cache.l2_ways", "[1, 17]"),
        "--set sector_cache.l2_ways=[1, 17]: sector_cache.l2_ways is [1, 17]; it must be at most 16 for each sector: \
         l2.ways is 16"
    );
    let load = |settings: &[(&str, &str)]| {
        let settings: Vec<_> = settings.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        load("a64fx", &settings)
    };
    let everywhere = ("topology.assistant_cmgs", "[0, 1, 2, 3]");
    let message = load(&[everywhere, ("sector_cache.l2_ways", "[1, 15]")]).unwrap_err().to_string();
    let expected = "at most 14 for each sector: l2.ways is 16, of which 2 are reserved (l2.reserved_ways)";
    assert!(message.contains(expected), "{message}");
    assert!(load(&[("sector_cache.l2_ways", "[1, 15]")]).is_ok());
}

#[test]
fn an_assistant_core_of_a_cmg_that_there_is_not_is_refused_naming_both() {
    assert_eq!(
        setting("topology.cmgs", "1"),
        "--set topology.cmgs=1: topology.assistant_cmgs is [0, 1]; it must be numbers of CMGs, each less than \
         topology.cmgs, 1"
    );
}

#[test]
fn ways_of_sectors_that_are_not_enabled_are_refused_naming_both() {
    let both = [("sector_cache.enabled", "false"), ("sector_cache.l2_ways", "[4, 10]")];
    let message = load("a64fx", &both.map(|(key, value)| (key.to_owned(), value.to_owned()))).unwrap_err().to_string();
    assert!(message.contains("sector_cache.l2_ways is [4, 10]; it must be all 0: sector_cache.enabled is false"));
}

#[test]
fn all_values_that_are_not_allowed_are_named_at_once() {
    let both = [("l2.ways".to_owned(), "65".to_owned()), ("tlb.walk_extra".to_owned(), "20000".to_owned())];
    let message = load("a64fx", &both).unwrap_err().to_string();
    assert_eq!(message.lines().count(), 2, "{message}");
}

#[test]
fn machines_that_extend_each_other_are_refused() {
    let circle = folder(
        "circle",
        &[("a/machine.toml", "extends = \"../b\"\n"), ("b/machine.toml", "extends = \"../a/machine.toml\"\n")],
    );
    let message = load(circle.join("a").to_str().unwrap(), &[]).unwrap_err().to_string();
    assert!(message.contains("b/machine.toml:1:1: machines extend each other in a circle"), "{message}");
    let own = folder("own", &[("machine.toml", "extends = \".\"\n")]);
    assert!(load(own.to_str().unwrap(), &[]).unwrap_err().to_string().contains("in a circle"));
}

#[test]
fn an_extended_machine_that_is_not_there_is_reported_where_it_is_named() {
    assert_eq!(
        message("\nextends = \"a64fz\""),
        "machine.toml:2:1: no machine is called 'a64fz'; did you mean 'a64fx'?"
    );
    let lost = folder("lost", &[("machine.toml", "extends = \"./gone\"\n")]);
    let message = load(lost.to_str().unwrap(), &[]).unwrap_err().to_string();
    assert!(message.contains("lost/machine.toml:1:1: cannot read") && message.contains("no such file"), "{message}");
}

#[test]
fn a_file_that_is_not_text_is_reported_with_its_place() {
    let message = load_bytes(b"extends = \"a64fx\"\n# \xff\n", None, &[]).unwrap_err().to_string();
    assert!(message.starts_with("machine.toml:2:3: this is not UTF-8 text"), "{message}");
}

#[test]
fn a_wrong_instruction_row_is_reported_with_file_line_and_class() {
    let rows =
        "class,vl_bits,uops,pipes,latency,blocking,decode_notes,fetch_ports,store_ports\nbase:ADC,,1,EXQ,1,,,,\n";
    let folder = folder("row", &[("machine.toml", "extends = \"a64fx\"\n"), ("instructions.csv", rows)]);
    let message = load(folder.to_str().unwrap(), &[]).unwrap_err().to_string();
    assert!(message.ends_with("row/instructions.csv:2: base:ADC: unknown pipe 'EXQ'; correct this row"), "{message}");
}

#[test]
fn a_memory_side_cache_must_fit_its_lines_its_memory_and_the_way_to_it() {
    let message = |key: &str, value: &str| {
        load("knl", &[(key.to_owned(), value.to_owned())]).map(|_| String::new()).unwrap_or_else(|e| e.to_string())
    };
    assert_eq!(message("memory_side_cache.hit_nearest", "200"), "", "sound as it is");
    let cases = [
        ("memory_side_cache.bytes", "3MiB", "0 (no such cache) or a power of two, at least a line of 64 bytes"),
        ("memory_side_cache.bytes", "256", "at most 536870912 lines of memory may map to one place"),
        ("memory_side_cache.bytes", "128GiB", "from 0 to 68_719_476_736"),
        ("memory_side_cache.hit_nearest", "10", "the path through L2 (with l2_timing.miss_detect) is part of it"),
        ("memory_side_cache.hit_farthest", "199", "at least memory_side_cache.hit_nearest, 200"),
        ("memory_side_cache.miss_detect", "229", "memory.latency_nearest is 228; it must be at least"),
        ("memory_side_cache.peak_bytes_per_second", "90_000_000_000_000", "16 lines a cycle"),
        ("memory_side_cache.write_cost", "-1", "from 0 to 16"),
    ];
    for (key, value, expected) in cases {
        let message = message(key, value);
        assert!(message.contains(expected), "{key}={value}: {message}");
    }
}

#[test]
fn a_setting_of_an_unknown_policy_names_the_choices() {
    let unknown = |key: &str, choices: &str| {
        let expected = format!("--set {key}=optimal: 'optimal' is no value for {key}; give one of {choices}");
        assert_eq!(setting(key, "optimal"), expected);
    };
    unknown("prefetch.policy", "stream, next_line");
    unknown("l1i.replacement", "lru, fifo, tree_plru, random");
    unknown("frontend.predictor", "perceptron, gshare");
}

#[test]
fn a_setting_of_an_option_that_the_selected_policy_does_not_have_is_refused() {
    let refused = |settings: &[(&str, &str)]| {
        let settings: Vec<_> = settings.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        load("a64fx", &settings).map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!(
        refused(&[("prefetch.queue", "8"), ("prefetch.policy", "next_line")]),
        Err("--set prefetch.queue=8: prefetch.queue has no effect with prefetch.policy next_line; it is an option of stream; \
             leave it out"
            .to_owned())
    );
    assert_eq!(
        refused(&[("frontend.pattern_entries", "64")]),
        Err("--set frontend.pattern_entries=64: frontend.pattern_entries has no effect with frontend.predictor perceptron; \
             it is an option of gshare; leave it out"
            .to_owned())
    );
    assert_eq!(refused(&[("frontend.pattern_entries", "64"), ("frontend.predictor", "gshare")]), Ok(()));
    assert_eq!(refused(&[("frontend.history_bits", "8"), ("frontend.predictor", "gshare")]), Ok(()), "both have it");
}

#[test]
fn a_key_under_its_earlier_name_is_answered_with_its_name() {
    assert_eq!(
        setting("tlb.l1_lru", "true"),
        "--set tlb.l1_lru=true: there is no key 'tlb.l1_lru'; its name is tlb.l1_replacement now"
    );
    let message = message("[window]\nrelay_registers = 3\n");
    assert_eq!(
        message,
        "machine.toml:2:1: table [window] has no key 'relay_registers'; its name is 'temporary_operand_registers' now"
    );
}
