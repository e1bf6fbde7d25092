//! Which pass of a measurement counted which event group.

use fxscope_machine::{Group, Groups};
use fxscope_record::{Counts, Region};

/// Returns, for each group, the pass of a region that counted all its events; the only pass, if there is just one.
pub(crate) fn of_groups(groups: &Groups, region: &Region) -> Vec<Option<usize>> {
    let whole = |group: &Group| {
        let counted = |pass: &Counts| group.events.iter().all(|e| pass.names().index(e).is_some());
        if region.passes.len() == 1 { Some(0) } else { region.passes.iter().position(counted) }
    };
    groups.iter().map(whole).collect()
}
