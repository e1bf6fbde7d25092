//! Machines by name and by path, what extends and changes them, and how they are shown and compared.

use std::fs;
use std::path::PathBuf;

use fxscope_machine::schema::Kind;
use fxscope_machine::spec::SCHEMA;
use fxscope_machine::{Spec, hash, list, load, load_bytes, show};
use proptest::prelude::*;

fn set(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn with(pairs: &[(&str, &str)]) -> Spec {
    load("a64fx", &set(pairs)).unwrap_or_else(|e| panic!("{e}"))
}

fn extended(text: &str) -> Spec {
    load_bytes(format!("extends = \"a64fx\"\n{text}").as_bytes(), None, &[]).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn every_built_in_machine_loads_and_is_listed_with_its_title() {
    let all = list();
    assert!(all.contains(&("a64fx", "Fujitsu A64FX (FX1000)".to_owned())));
    for (name, _) in all {
        load(name, &[]).unwrap_or_else(|e| panic!("{e}")).check().unwrap();
    }
}

#[test]
fn a_built_in_machine_can_take_its_instructions_from_another() {
    let [k, a64fx] = ["k-computer", "a64fx"].map(|name| load(name, &[]).unwrap());
    assert_eq!((k.csv_from.as_str(), a64fx.csv_from.as_str()), ("a64fx", "a64fx"));
    assert!(k.identity.note.contains("instruction behaviour is that of A64FX") && a64fx.identity.note.is_empty());
    assert_eq!(
        (k.tlb.l2_only_sizes.as_slice(), a64fx.tlb.l2_only_sizes.as_slice()),
        ([4 << 20].as_slice(), [].as_slice())
    );
}

#[test]
fn a_row_without_a_fixed_length_takes_sizes_with_units() {
    let served = |text| load("k-computer", &set(&[("tlb.l2_only_sizes", text)])).unwrap().tables.tlb.l2_only_sizes;
    assert_eq!(served("[4MiB, 256MiB]"), [4 << 20, 256 << 20]);
    assert_eq!(served("32MiB"), [32 << 20]);
    assert!(served("[]").is_empty());
    let nine = set(&[("tlb.l2_only_sizes", "1,1,1,1,1,1,1,1,1")]);
    let message = load("k-computer", &nine).unwrap_err().to_string();
    assert!(message.ends_with("give at most 8 whole numbers in square brackets"), "{message}");
}

#[test]
fn settings_take_the_place_of_values() {
    let spec = with(&[("l2.bytes", "16MiB"), ("memory.latency_nearest", "270"), ("memory.write_cost", "1")]);
    assert_eq!((spec.l2.bytes, spec.memory.latency_nearest, spec.memory.write_cost), (16 << 20, 270, 1.0));
    assert_eq!(spec.l1d, with(&[]).l1d);
    assert_eq!(with(&[("l2.ways", "8"), ("l2.ways", "4")]).l2.ways, 4, "the later one counts");
}

#[test]
fn the_vector_length_chooses_the_instruction_rows() {
    let uops = |bits| {
        let spec = with(&[("clock.vector_bits", bits)]);
        spec.recipes.sorted().map(|(_, recipe)| recipe.uops.len()).sum::<usize>()
    };
    assert!(uops("128") < uops("256") && uops("256") < uops("512"), "gathers split into fewer micro-operations");
}

#[test]
fn an_extending_machine_says_only_what_differs() {
    let spec = extended("[memory]\nlatency_nearest = 300\nlatency_farthest = 330\n");
    let plain = with(&[]);
    assert_eq!((spec.memory.latency_nearest, spec.memory.write_cost), (300, plain.memory.write_cost));
    assert_eq!(spec.recipes, plain.recipes);
}

#[test]
fn machines_in_folders_extend_each_other_by_relative_paths_and_keep_their_rows() {
    let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("chain");
    let header = "class,vl_bits,uops,pipes,latency,blocking,decode_notes,fetch_ports,store_ports\n";
    for (file, text) in [
        ("slow/machine.toml", "extends = \"a64fx\"\n[memory]\nlatency_farthest = 400\n".to_owned()),
        ("slow/instructions.csv", format!("{header}base:ADC,,1,EX*,3,,,,\n")),
        ("slower/machine.toml", "extends = \"../slow\"\n[memory]\nlatency_farthest = 500\n".to_owned()),
        ("single.toml", "extends = \"slower/machine.toml\"\n".to_owned()),
    ] {
        fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
        fs::write(root.join(file), text).unwrap();
    }
    let load = |path: &str| load(root.join(path).to_str().unwrap(), &[]).unwrap_or_else(|e| panic!("{e}"));
    let (slow, slower, single) = (load("slow"), load("slower/machine.toml"), load("single.toml"));
    assert_eq!((slow.name.as_str(), slower.name.as_str(), single.name.as_str()), ("slow", "slower", "single"));
    assert_eq!((slow.memory.latency_farthest, slower.memory.latency_farthest), (400, 500));
    let latency = |spec: &Spec| spec.recipes.named("base:ADC").unwrap().uops[0].flows[0].latency;
    assert_eq!((latency(&slow), latency(&slower), latency(&single)), (3, 3, 3));
    assert_eq!(hash(&slower), hash(&single));
    // What is shown of a machine with rows of its own finds them again.
    fs::write(root.join("shown.toml"), show(&single)).unwrap();
    let shown = load("shown.toml");
    assert_eq!((&shown.tables, &shown.recipes), (&single.tables, &single.recipes));
}

#[test]
fn a_shown_machine_loads_again_as_the_same() {
    for pairs in [&[][..], &[("clock.vector_bits", "256"), ("identity.title", "a \"b\" \\ c\u{7}\n")]] {
        let spec = with(pairs);
        let again = load_bytes(show(&spec).as_bytes(), None, &[]).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((&again.tables, &again.recipes), (&spec.tables, &spec.recipes));
        assert_eq!(again.provenance, spec.provenance);
        assert_eq!(hash(&again), hash(&spec));
        assert_eq!(show(&spec), show(&with(pairs)), "the order is always the same");
    }
}

#[test]
fn the_hash_tells_machines_apart_by_what_the_model_reads() {
    let plain = with(&[]);
    assert_eq!(hash(&plain).len(), 64);
    assert_ne!(hash(&plain), hash(&with(&[("memory.write_cost", "1.25")])));
    assert_ne!(hash(&plain), hash(&with(&[("clock.vector_bits", "256")])));
    let of_another = "[l2.bytes]\nvalue = 8_388_608\nevidence = \"measured\"\nsource = \"me\"\n";
    assert_eq!(hash(&plain), hash(&extended(of_another)), "evidence makes no difference");
    assert_eq!(hash(&plain), hash(&extended("")), "a name makes no difference");
}

/// Numbers as likely to be allowed as not.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..20u64, (0..64u32).prop_map(|shift| 1 << shift), 0..2000u64, any::<u64>()]
}

/// Settings of any keys to any values of their kinds.
fn settings() -> impl Strategy<Value = Vec<(String, String)>> {
    let keys: Vec<_> = SCHEMA.iter().flat_map(|t| t.keys.iter().map(move |k| (t.name, k))).collect();
    let setting = (proptest::sample::select(keys), number(), any::<f64>(), any::<bool>(), any::<bool>());
    let setting = setting.prop_map(|((table, key), n, x, small, on)| {
        let value = match key.kind {
            Kind::Integer(_) => n.to_string(),
            Kind::Real if small => (n as f64 / 16.0).to_string(),
            Kind::Real => x.to_string(),
            Kind::Switch => on.to_string(),
            Kind::Text => format!("{x}\""),
            Kind::Choice(names) => names[n as usize % names.len()].to_owned(),
            Kind::UpTo(_) => format!("{:?}", vec![n % 300; usize::from(small)]),
            Kind::List(len) => format!("{:?}", vec![n % 300; len]),
        };
        (format!("{}.{}", table, key.name), value)
    });
    proptest::collection::vec(setting, 1..5)
}

/// What the constructors of the memory and pipeline models need, written out without them.
fn assert_buildable(spec: &Spec) {
    for cache in [&spec.l1i, &spec.l1d, &spec.l2] {
        let sets = cache.bytes / u64::from(cache.ways) / u64::from(cache.line_bytes);
        assert!(sets.is_power_of_two() && sets * u64::from(cache.ways) <= 1 << 21);
        assert!(cache.reserved_ways < cache.ways && cache.miss_buffers > 0);
        assert_eq!(cache.line_bytes, spec.l1d.line_bytes);
    }
    let line = spec.l1d.line_bytes;
    assert!(spec.l2_timing.fill_bytes_per_cycle <= line && spec.l2_timing.writeback_bytes_per_cycle <= line);
    let bytes_per_cycle = spec.memory.peak_bytes_per_second as f64 / spec.clock.core_hz as f64;
    let period = f64::from(line) / bytes_per_cycle / (spec.memory.read_efficiency / 100.0) * 256.0;
    assert!((1.0..1e12).contains(&period) && spec.memory.write_cost >= 0.0);
    assert!(spec.l2_timing.request_period * 256.0 >= 1.0);
    assert!(spec.l2_timing.hit_nearest <= spec.l2_timing.hit_farthest);
    assert!(spec.memory.latency_nearest <= spec.memory.latency_farthest);
    assert!(spec.window.commit_stack / spec.window.group_entries > 0);
    let entries = [spec.stations.rse_entries, spec.stations.rsa_entries, spec.stations.rsbr_entries];
    assert!(entries.iter().all(|n| (2..256).contains(n)) && spec.stations.writes_per_cycle > 0);
    assert!(spec.tlb.l1_entries <= 256 && spec.tlb.l2_entries.is_multiple_of(spec.tlb.l2_ways));
    assert!(spec.prefetch.queue > 0 && spec.frontend.taken_branch_cycles > 0 && spec.identity.counter_hz > 0);
}

#[test]
fn what_a_memory_side_cache_asks_of_the_machine_is_put_down_to_the_setting_that_adds_it() {
    for bytes in ["256", "17179869184", "34359738368"] {
        let settings = [("memory_side_cache.bytes".to_owned(), bytes.to_owned())];
        let refused = load("a64fx", &settings).expect_err("its latencies are those of no cache").to_string();
        assert!(refused.contains("memory_side_cache.bytes"), "{refused}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_settings_are_refused_with_a_message_or_give_a_machine_that_can_be_built(settings in settings()) {
        match load("a64fx", &settings) {
            Ok(spec) => {
                assert_buildable(&spec);
                let again = load_bytes(show(&spec).as_bytes(), None, &[]).unwrap_or_else(|e| panic!("{e}"));
                prop_assert_eq!(again.tables, spec.tables);
            }
            Err(e) => {
                let message = e.to_string();
                prop_assert!(settings.iter().any(|(key, _)| message.contains(key)), "{}", message);
            }
        }
    }

    #[test]
    fn any_damage_to_a_file_is_refused_or_harmless(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut text = show(&load("a64fx", &[]).unwrap()).into_bytes();
        let at = at.index(text.len());
        text[at] = byte;
        if cut {
            text.truncate(at + 1);
        }
        if let Ok(spec) = load_bytes(&text, None, &[]) {
            assert_buildable(&spec);
        }
    }
}
