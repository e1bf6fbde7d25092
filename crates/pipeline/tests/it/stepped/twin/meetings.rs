//! Loads that meet older stores (manual 7.5).

use super::Twin;
use crate::stepped::parts::{Entry, Step, Store};

/// What a load meets.
#[derive(PartialEq, Eq)]
pub(super) enum Meets {
    /// Nothing, or data in time.
    Nothing,
    /// A store that hands nothing over now.
    Late,
    /// A store whose address is not known yet.
    Unknown,
}

impl Twin<'_> {
    /// A store is dispatched.
    pub(super) fn begin_store(&mut self, number: usize, step: &Step) {
        let flow = u64::from(step.uop.to_commit);
        let spec = &self.spec.load_store;
        let hands_over_in = if step.uop.mem.op.bytes > 8 { spec.forward_vector } else { spec.forward };
        let bytes = step.bytes;
        self.stores.push(Store { number, bytes, flow, hands_over_in, known: None, data: None, written: None });
    }

    pub(super) fn store(&mut self, number: usize) -> &mut Store {
        self.stores.iter_mut().find(|s| s.number == number).expect("a store that is not over")
    }

    /// Stores that are over are met by nobody.
    pub(super) fn forget_stores(&mut self) {
        let now = self.now;
        self.stores.retain(|s| s.written.is_none_or(|t| t + s.flow > now));
    }

    /// What a flow of this load does when it meets older stores in this cycle: the youngest of them has it come again,
    /// unless that has its data and may hand them over.
    pub(super) fn meets(&self, load: &Entry) -> Meets {
        let older = self.stores.iter().filter(|s| s.number < load.number && s.bytes.meets(load.bytes));
        let Some(store) = older.max_by_key(|s| s.number) else { return Meets::Nothing };
        if store.known.is_none_or(|t| t > self.now) {
            return Meets::Unknown;
        }
        let has_data = store.data.is_some_and(|data| data + store.hands_over_in <= self.now);
        if has_data && store.bytes.hand_over(load.bytes) { Meets::Nothing } else { Meets::Late }
    }
}
