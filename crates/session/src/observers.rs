//! Several observers of a run as one.

use fxscope_sim::{BlockEvent, BlockObserver};

/// Observers that are called one after the other.
pub(crate) struct Observers<'o>(pub Vec<&'o mut dyn BlockObserver>);

impl BlockObserver for Observers<'_> {
    fn may_skip_iterations(&self) -> bool {
        self.0.iter().all(|observer| observer.may_skip_iterations())
    }

    fn ran(&mut self, event: &mut BlockEvent<'_>) {
        for observer in &mut self.0 {
            observer.ran(event);
        }
    }

    fn followed(&mut self, event: &mut BlockEvent<'_>) {
        for observer in &mut self.0 {
            observer.followed(event);
        }
    }
}
