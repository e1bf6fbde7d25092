//! Variables for a sector of L2 of their own: those that come into L2 again and again although they would fit.

use fxscope_machine::Spec;
use fxscope_record::{DataObject, ObjectKind};
use fxscope_session::Scenario;

use crate::{Capture, Error, Runner};

/// How often each line of a variable must come into L2, on average, for a sector to help.
const REFILLS: f64 = 1.5;
/// Smallest share of all lines that come into L2 for which a variable is tried.
const SHARE: f64 = 0.05;
/// Most variables that are tried.
const MOST: usize = 2;
/// Ways that are left to all other data.
const OTHERS: u64 = 2;

/// Runs the program once more with its misses attributed to data, and returns the ways and the data for `--sector`, those with most
/// refills first.
pub(super) fn reused_variables(scenario: &Scenario, spec: &Spec, runner: &Runner) -> Result<Vec<String>, Error> {
    if !spec.sector_cache.enabled {
        return Ok(Vec::new());
    }
    let mut with_data = scenario.clone();
    with_data.options.data = true;
    let Ok(found) = runner.run_captured(&with_data, Capture::Error) else { return Ok(Vec::new()) };
    let mut objects = found.run.profile.data.objects;
    let all: u64 = objects.iter().map(|object| object.counts.l2_refills).sum();
    objects.retain(|object| object.counts.l2_refills as f64 >= SHARE * all as f64);
    objects.sort_by_key(|object| std::cmp::Reverse(object.counts.l2_refills));
    Ok(objects.iter().filter_map(|object| sector(object, spec)).take(MOST).collect())
}

/// Returns a sector of L2 that holds an object, if that may help and the object can be assigned to it.
fn sector(object: &DataObject, spec: &Spec) -> Option<String> {
    let is_plain = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
    let can_be_named = object.kind == ObjectKind::Variable && !object.name.is_empty() && is_plain(&object.name);
    let fewest = (0..spec.topology.cmgs).map(|cmg| u64::from(spec.l2_ways(cmg))).min()?;
    let way_bytes = spec.l2.bytes / u64::from(spec.l2.ways);
    // One more way, since lines of an object are not spread evenly over the sets.
    let ways = object.bytes.div_ceil(way_bytes) + 1;
    let read = object.counts.l2_refills as f64 * f64::from(spec.l2.line_bytes);
    let is_reused = object.bytes > 0 && read > REFILLS * object.bytes as f64;
    (can_be_named && is_reused && ways + OTHERS <= fewest).then(|| format!("L2={ways},assign={}", object.name))
}

#[cfg(test)]
mod tests {
    use fxscope_record::DataCounts;

    use super::*;

    #[test]
    fn a_variable_that_fits_and_is_read_twice_gets_a_sector() {
        let spec = Scenario::new("a.out").spec().expect("built in");
        let mib = 1 << 20;
        let object = |kind, bytes: u64, times: f64| DataObject {
            kind,
            name: "b".to_owned(),
            bytes,
            counts: DataCounts {
                l2_refills: (times * bytes as f64 / f64::from(spec.l2.line_bytes)) as u64,
                ..DataCounts::default()
            },
            ..DataObject::default()
        };
        // Ways of 512 KiB.
        assert_eq!(sector(&object(ObjectKind::Variable, 4 * mib, 2.0), &spec).as_deref(), Some("L2=9,assign=b"));
        assert_eq!(sector(&object(ObjectKind::Variable, 4 * mib, 1.0), &spec), None, "read once");
        assert_eq!(sector(&object(ObjectKind::Variable, 8 * mib, 2.0), &spec), None, "too large");
        assert_eq!(sector(&object(ObjectKind::Heap, 4 * mib, 2.0), &spec), None, "without a name");
        let odd = DataObject { name: "b,L2=3".to_owned(), ..object(ObjectKind::Variable, 4 * mib, 2.0) };
        assert_eq!(sector(&odd, &spec), None, "no name for an option");
    }
}
