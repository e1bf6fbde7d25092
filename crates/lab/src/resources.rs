//! The resources that a loop needs so that out-of-order execution alone keeps the pipes of its operations busy: the formulas of the tuning
//! guide (000, 2.8).

use fxscope_machine::Spec;
use fxscope_report::sheet::{Cell, Column, Sheet, Table};

use crate::Error;

/// The operation whose latency and pipes count, if none is named.
pub const DEFAULT_OPERATION: &str = "sve:FMLA";

/// Registers of vectors that instructions name (Arm ARM B1.2).
const NAMED_REGISTERS: u64 = 32;

/// Stations for operations, RSE0 and RSE1.
const STATIONS: u64 = 2;

/// What a loop does for each result, a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Operations, each of which needs the one before.
    pub operations: u64,
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
    /// Registers that keep their values through the loop.
    pub constants: u64,
    /// Results of an iteration.
    pub unroll: u64,
}

/// A resource of the core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Its name, and its unit.
    pub name: &'static str,
    /// How many entries the loop needs.
    pub required: u64,
    /// How many the core has.
    pub available: u64,
    /// How the former is computed.
    pub formula: &'static str,
}

/// Returns the results that must be in flight so that operations of a class keep their pipes busy: one for each cycle of their latency
/// in each pipe.
fn in_flight(spec: &Spec, operation: &str) -> Result<u64, Error> {
    let unknown = || {
        Error::Request(format!(
            "{} has no row for the operation '{operation}'; name a class of its instructions.csv, such as {DEFAULT_OPERATION}",
            spec.name
        ))
    };
    let recipe = spec.recipes.named(operation).ok_or_else(unknown)?;
    let flow = recipe.uops.first().and_then(|uop| uop.flows.first()).ok_or_else(unknown)?;
    Ok(u64::from(flow.latency_max) * u64::from(flow.pipes.0.count_ones()))
}

/// Returns what a loop needs of each resource.
///
/// # Errors
/// If the machine has no such operation.
pub fn needs(spec: &Spec, operation: &str, shape: Shape) -> Result<Vec<Need>, Error> {
    let results = in_flight(spec, operation)?;
    let Shape { operations, loads, stores, constants, unroll } = shape;
    let (window, stations) = (&spec.window, &spec.stations);
    let need = |name, required, available: u64, formula| Need { name, required, available, formula };
    Ok(vec![
        need(
            "vector registers",
            constants + 2 * results,
            NAMED_REGISTERS + u64::from(window.rename_vector),
            "constants + 2 x results in flight",
        ),
        need(
            "stations RSE0 and RSE1",
            operations * results,
            STATIONS * u64::from(stations.rse_entries),
            "operations x results in flight",
        ),
        need("station RSBR", results / unroll, u64::from(stations.rsbr_entries), "results in flight / unroll"),
        need("fetch ports", loads * results, u64::from(spec.load_store.fetch_ports), "loads x results in flight"),
        need("store ports", stores * results, u64::from(spec.load_store.store_ports), "stores x results in flight"),
        need(
            "commit stack",
            (operations + loads + stores) * results,
            u64::from(window.commit_stack),
            "all three x results in flight",
        ),
    ])
}

/// Returns what a loop needs as a table.
///
/// # Errors
/// If the machine cannot be loaded, or has no such operation.
pub fn sheet(machine: &str, operation: &str, shape: Shape) -> Result<Sheet, Error> {
    let spec = fxscope_machine::load(machine, &[])?;
    let columns = ["resource", "required", "available", "enough", "formula"];
    let mut table = Table::new("Resources of the loop", columns.map(Column::new));
    let needs = needs(&spec, operation, shape)?;
    for need in &needs {
        let number = |count: u64| Cell::new(count, count.to_string());
        let enough = if need.required <= need.available { "yes" } else { "no" };
        table.push(
            need.name.to_owned(),
            vec![number(need.required), number(need.available), Cell::word(enough), Cell::word(need.formula)],
        );
    }
    let results = in_flight(&spec, operation)?;
    let busy = format!(
        "{results} results in flight keep the pipes of {operation} busy: one for each cycle of its latency in each pipe."
    );
    let verdict = match needs
        .iter()
        .filter(|need| need.required > need.available)
        .map(|need| need.name)
        .collect::<Vec<_>>()
    {
        short if short.is_empty() => {
            "Out-of-order execution alone keeps them busy, if nothing else waits and iterations are independent."
                .to_owned()
        }
        short => format!(
            "Out-of-order execution alone cannot keep them busy for lack of: {}. Software pipelining, or a loop split into shorter \
             chains, needs fewer.",
            short.join(", ")
        ),
    };
    Ok(Sheet {
        title: format!("Out-of-order execution of a loop on {machine}"),
        tables: vec![table],
        notes: vec![("Loop", vec![busy, verdict])],
        ..Sheet::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The guide's loop, y(:,j) = c0 + y(:,j)*(c1 + ...), with this many multiply-adds, two results an iteration.
    fn of_guide(operations: u64) -> Vec<(u64, u64)> {
        let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
        let shape = Shape { operations, loads: 1, stores: 1, constants: operations + 1, unroll: 2 };
        let needs = needs(&spec, DEFAULT_OPERATION, shape).expect("it has multiply-adds");
        needs.iter().map(|need| (need.required, need.available)).collect()
    }

    #[test]
    fn the_table_of_the_guide_for_two_three_and_nine_operations_is_reproduced() {
        // ooo-0029 to ooo-0048, and RSBR as ooo-0016.
        for (operations, registers, rse) in [(2, 39, 36), (3, 40, 54), (9, 46, 162)] {
            let expected = [(registers, 128), (rse, 40), (9, 19), (18, 40), (18, 24)];
            assert_eq!(of_guide(operations)[..5], expected, "{operations}");
        }
    }

    #[test]
    fn each_instruction_of_a_result_takes_an_entry_of_the_commit_stack() {
        assert_eq!(of_guide(9)[5], ((9 + 1 + 1) * 18, 128));
    }

    #[test]
    fn with_one_floating_point_pipe_half_as_many_results_are_in_flight() {
        let settings = [("power.mode".to_owned(), "eco".to_owned())];
        let eco = fxscope_machine::load("a64fx", &settings).expect("a mode of the machine");
        let shape = Shape { operations: 2, loads: 1, stores: 1, constants: 3, unroll: 2 };
        assert_eq!(needs(&eco, DEFAULT_OPERATION, shape).expect("known")[1].required, 18);
    }

    #[test]
    fn an_operation_that_the_machine_does_not_have_is_refused() {
        let shape = Shape { operations: 1, loads: 1, stores: 1, constants: 1, unroll: 1 };
        let error = sheet("a64fx", "sve:NONE", shape).expect_err("no such row").to_string();
        assert!(error.contains("no row for the operation 'sve:NONE'"), "{error}");
    }
}
