//! MOVPRFX: packed with the instruction behind it (manual 4.3, 6.5.1).

use fxscope_machine::{Recipe, Spec, Uop};
use fxscope_uop::{RegList, StaticInst};

/// An instruction packed with the MOVPRFX before it: it reads what the MOVPRFX reads in place of the register moved.
pub(super) fn behind_prefix(info: &StaticInst, prefix: &StaticInst) -> StaticInst {
    let mut packed = *info;
    packed.srcs = RegList::EMPTY;
    for reg in info.srcs.iter() {
        if prefix.dsts.iter().any(|d| d == reg) {
            prefix.srcs.iter().filter(|s| *s != reg).for_each(|s| packed.srcs.push(s));
        } else {
            packed.srcs.push(reg);
        }
    }
    packed
}

/// Whether a MOVPRFX keeps inactive elements: it reads what it writes.
pub(super) fn merges(prefix: &StaticInst) -> bool {
    prefix.srcs.iter().any(|s| prefix.dsts.iter().any(|d| d == s))
}

/// An instruction packed with a merging MOVPRFX has the MOVPRFX's own operation at its end (manual 4.3).
pub(super) fn with_merge(recipe: &Recipe, prefix: &StaticInst, spec: &Spec) -> Recipe {
    let mut merged = recipe.clone();
    let own = spec.recipes.get(prefix.class).and_then(|r| r.uops.first()).cloned().unwrap_or_default();
    merged.uops.push(Uop { depends: vec![1], ..own });
    merged
}
