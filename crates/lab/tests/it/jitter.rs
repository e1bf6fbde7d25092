//! Noise at scale, compared with arithmetic.

use fxscope_jitter::Time;
use fxscope_jitter::remedies::Options as Settings;
use fxscope_lab::jitter::{LinpackOptions, Options, compare, linpack, profiles, show, simulate};

fn small(model: &str) -> Options {
    Options { cores_per_node: 4, phases: 200, grain: Time(1e6), ..Options::new(model, [1, 8, 64]) }
}

/// Without noise a phase is its grain and the synchronisation.
#[test]
fn without_noise_only_synchronisation_costs_time() {
    let sheet = simulate(&small("silent")).expect("it can be simulated");
    let table = &sheet.tables[0];
    let column = |title: &str| table.columns.iter().position(|c| c.title == title).expect("a column") - 1;
    assert_eq!(table.rows.len(), 3);
    for (label, cells) in &table.rows {
        let number = |title: &str| cells[column(title)].value().as_f64().expect("a number");
        assert_eq!(number("noise"), 0.0, "{label}");
        let expected = 1e6 / (1e6 + number("sync"));
        assert!((number("efficiency") / expected - 1.0).abs() < 1e-9, "{label}");
    }
}

#[test]
fn remedies_are_compared_at_all_sizes() {
    let settings = Settings { rate: 0.5, length: 0.5, sibling: 0.3, grain: 4, collectives: 4 };
    let sheet = compare(&small("linux-1000hz"), &settings).expect("it can be simulated");
    assert!(sheet.tables.iter().all(|table| table.columns.len() == 4 && table.rows.len() > 2));
    assert!(sheet.notes.iter().any(|(title, sentences)| *title == "Advice" && !sentences.is_empty()));
}

#[test]
fn built_in_models_are_listed_and_shown() {
    let list = profiles().expect("all load");
    assert!(["k-computer", "silent", "tofud"].iter().all(|name| list.contains(name)), "{list}");
    assert!(show("linux-1000hz", 48).expect("there").title.starts_with("linux-1000hz: "));
    assert!(show("no-such-model", 48).is_err());
}

/// The shares of a run's time add up to one.
#[test]
fn linpacks_efficiency_and_losses_add_up_to_the_whole_time() {
    let options = LinpackOptions {
        machine: "fx1".to_owned(),
        nodes: vec![64],
        memory: 32 << 30,
        fill: Some(0.5),
        n: None,
        model: None,
        seed: 1,
    };
    let sheet = linpack(&options).expect("it can be estimated");
    let number =
        |table: usize, column: usize| sheet.tables[table].rows[0].1[column].value().as_f64().expect("a number");
    let efficiency = number(0, 4);
    let lost: f64 = (1..=4).map(|column| number(1, column)).sum();
    assert!((efficiency + lost - 1.0).abs() < 1e-6, "{efficiency} + {lost}");
}
