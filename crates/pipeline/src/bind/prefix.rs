//! MOVPRFX: packing with the next instruction (manual 4.3, 6.5.1).

use fxscope_isa::{RegClass, RegList, StaticInst};
use fxscope_machine::{Dependence, Recipe, Spec, Uop};

/// An instruction packed with the MOVPRFX before it: it reads the source of the MOVPRFX instead of the moved register.
/// If there is an operation at the end (`extra`), that one merges.
pub(super) fn behind_prefix(info: &StaticInst, prefix: &StaticInst, extra: bool) -> StaticInst {
    let mut packed = *info;
    packed.srcs = RegList::EMPTY;
    let Some(moved) = prefix.dsts.get(0).filter(|&moved| info.srcs.iter().any(|r| r == moved)) else { return *info };
    let from = prefix.srcs.iter().find(|r| r.class() == RegClass::Vector && *r != moved);
    for reg in info.srcs.iter() {
        if reg == moved {
            prefix.srcs.iter().for_each(|s| packed.srcs.push(s));
        } else {
            packed.srcs.push(reg);
        }
    }
    packed.accumulator = match info.accumulator {
        _ if extra => Some(moved),
        Some(reg) if reg == moved => from,
        other => other,
    };
    packed
}

/// Whether a MOVPRFX keeps inactive elements: it reads what it writes.
pub(super) fn merges(prefix: &StaticInst) -> bool {
    prefix.srcs.iter().any(|s| prefix.dsts.iter().any(|d| d == s))
}

/// An instruction packed with a merging MOVPRFX has the MOVPRFX's own operation at its end (manual 6.5.1).
pub(super) fn with_merge(recipe: &Recipe, prefix: &StaticInst, spec: &Spec) -> Recipe {
    let own = spec.recipes.get(prefix.class).and_then(|r| r.uops.first()).cloned().unwrap_or_default();
    let last = Uop { depends: vec![Dependence { places: 1, flow: 0 }], ..own };
    Recipe { uops: recipe.uops.iter().cloned().chain([last]).collect(), ..recipe.clone() }
}
