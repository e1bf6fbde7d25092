//! Entries that a loop of independent chains occupies while the pipes are busy, beside those that the core has.

use fxscope_machine::Spec;
use fxscope_report::sheet::{Cell, Column, Sheet, Table};

use super::data::{ChainLoop, Resources};
use crate::{Error, prefetched};

/// The timing class of the chain's operations.
const FMA: &str = "sve:FMLA";
/// Vector registers of the architecture, beside which a core has rename registers.
const ARCHITECTURAL: u32 = 32;
/// Stations of each kind.
const STATIONS: u32 = 2;
/// What is counted, in the order of [`needed`] and [`available`].
const COLUMNS: [&str; 5] = ["vector registers", "RSE", "RSBR", "load queue", "store queue"];

/// Elements in flight that keep the pipes busy: one starts on each pipe in each cycle of an operation's latency.
fn in_flight(spec: &Spec) -> Result<u32, Error> {
    let first = spec.recipes.named(FMA).and_then(|recipe| recipe.uops.first()).and_then(|uop| uop.flows.first());
    let flow = first.ok_or_else(|| Error::from(format!("{}: instructions.csv has no row {FMA}", spec.name)))?;
    Ok(flow.latency * flow.pipes.0.count_ones())
}

/// The entries that a loop needs: a register for the value and for the sum of each element, a station entry for each FMA that
/// waits, one for the branch of each iteration, and one of each queue for each load and store.
fn needed(one: &ChainLoop, unrolled: u32, in_flight: u32) -> [u32; 5] {
    [
        one.constants + 2 * in_flight,
        one.fma * in_flight,
        in_flight / unrolled.max(1),
        one.loads * in_flight,
        one.stores * in_flight,
    ]
}

fn available(spec: &Spec) -> [u32; 5] {
    [
        ARCHITECTURAL + spec.window.rename_vector,
        STATIONS * spec.stations.rse_entries,
        spec.stations.rsbr_entries,
        spec.load_store.fetch_ports,
        spec.load_store.store_ports,
    ]
}

/// A table of what each loop needs, and notes on what is short.
///
/// # Errors
/// If the machine cannot be loaded, or has no such operation.
pub(super) fn sheet(what: &Resources) -> Result<Sheet, Error> {
    let spec = fxscope_machine::load(prefetched::DEFAULT_MACHINE, &[])?;
    let (in_flight, has) = (in_flight(&spec)?, available(&spec));
    let entries = |numbers: [u32; 5]| numbers.map(|number| Cell::new(number, number.to_string())).to_vec();
    let columns = std::iter::once("loop").chain(COLUMNS).map(Column::new);
    let mut table = Table::new("Entries that keep all pipes busy", columns);
    let (mut notes, mut agree) = (Vec::new(), 0);
    for one in &what.loops {
        let needs = needed(one, what.unrolled, in_flight);
        agree += needs.iter().zip(&one.published).filter(|(needs, published)| needs == published).count();
        table.push(format!("{} FMA, published", one.fma), entries(one.published));
        table.push(format!("{} FMA, computed", one.fma), entries(needs));
        let short = COLUMNS.iter().zip(needs.iter().zip(&has)).filter(|(_, (needs, has))| needs > has);
        let short: Vec<&str> = short.map(|(column, _)| *column).collect();
        let verdict =
            if short.is_empty() { "nothing is short".to_owned() } else { format!("short of {}", short.join(", ")) };
        notes.push(format!("{} FMA: {verdict}.", one.fma));
    }
    table.push("the core has".to_owned(), entries(has));
    notes.push(format!("{agree} of {} published numbers agree.", COLUMNS.len() * what.loops.len()));
    Ok(Sheet { tables: vec![table], notes: vec![("Seen", notes)], ..Sheet::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_follow_from_latency_and_pipes() {
        let one = ChainLoop { fma: 3, loads: 1, stores: 1, constants: 4, published: [40, 54, 9, 18, 18] };
        assert_eq!(needed(&one, 2, 18), one.published);
        assert_eq!(needed(&one, 1, 18)[2], 18, "a branch for each element");
    }

    #[test]
    fn elements_in_flight_are_those_of_the_machine() {
        let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
        assert_eq!(in_flight(&spec).expect("it has FMA"), 18, "9 cycles on 2 pipes");
        assert_eq!(available(&spec)[1], 40);
    }
}
