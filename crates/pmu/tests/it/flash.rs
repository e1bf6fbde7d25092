//! Rates from the manual, compared with the published analysis of FLASH on an FX700 (testdata/README.md): every printed
//! rate follows from the raw counters.

use std::collections::BTreeMap;

use fxscope_pmu::{Evaluation, Pmu, constants};
use fxscope_record::{Region, Thread};

const COUNTERS: &str = include_str!("../../../../testdata/flash/counters.csv");
const RATES: &str = include_str!("../../../../testdata/flash/rates.csv");

/// The rows of a table below its headings: label and cells.
fn lines(table: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
    table.lines().skip(1).map(|line| {
        let mut cells = line.split(',');
        (cells.next().expect("a name"), cells.collect())
    })
}

/// Half a unit of the last printed digit.
fn rounding(printed: &str) -> f64 {
    let (digits, exponent) = printed.split_once('e').unwrap_or((printed, "0"));
    let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len() as i32);
    0.5 * 10f64.powi(exponent.parse::<i32>().expect("an exponent") - decimals)
}

#[test]
fn every_rate_of_flash_follows_from_its_counters() {
    let settings = [("clock.core_hz".to_owned(), "1800000000".to_owned())];
    let constants = constants(&fxscope_machine::load("a64fx", &settings).expect("an FX700"));
    for variant in 0..4 {
        let count = |(name, cells): (&str, Vec<&str>)| (name.to_owned(), cells[variant].parse().expect("a count"));
        let counts: BTreeMap<String, u64> = lines(COUNTERS).map(count).collect();
        let region = Region::of_one_pass("all", 1, vec![(Thread { cpu: 12, ..Thread::default() }, counts)]);
        let values = Evaluation::with(&region, &constants, &Pmu::built_in("a64fx").expect("built in").groups).total();
        let mut rates = 0;
        for (metric, cells) in lines(RATES) {
            let printed: f64 = cells[variant].parse().expect("a rate");
            let value = values.get(metric).unwrap_or_else(|| panic!("{metric} has no value"));
            let near = (value - printed).abs() <= rounding(cells[variant]) * 1.000_1;
            assert!(near, "variant {variant}: {metric} is {value}, printed {}", cells[variant]);
            rates += 1;
        }
        assert_eq!(rates, 25);
    }
}
