//! Named parts of a run, marked by the program.

use fxscope_base::Signals;

/// The region every run has.
pub const ALL: &str = "all";

/// What was counted in a named part of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its name.
    pub name: String,
    /// Times it was entered.
    pub calls: u64,
    /// What was counted inside, all calls together.
    pub signals: Signals,
}

/// Regions while a program runs.
#[derive(Default)]
pub struct Regions {
    done: Vec<Region>,
    open: Vec<(String, Signals)>,
}

impl Regions {
    /// The program enters `name`; `now` is the state of the counters.
    pub fn begin(&mut self, name: String, now: Signals) {
        self.open.push((name, now));
    }

    /// The program leaves the innermost region. One that was never entered is ignored.
    pub fn end(&mut self, now: &Signals) {
        let Some((name, start)) = self.open.pop() else { return };
        let counted = now.since(&start);
        match self.done.iter_mut().find(|r| r.name == name) {
            Some(region) => {
                region.calls += 1;
                region.signals.merge(&counted);
            }
            None => self.done.push(Region { name, calls: 1, signals: counted }),
        }
    }

    /// All regions, the whole run first; regions still open end here.
    pub fn finish(mut self, now: &Signals) -> Vec<Region> {
        while !self.open.is_empty() {
            self.end(now);
        }
        let mut all = vec![Region { name: ALL.to_string(), calls: 1, signals: now.clone() }];
        all.append(&mut self.done);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fxscope_base::Signal;

    fn cycles(n: u64) -> Signals {
        let mut s = Signals::default();
        s.set(Signal::CpuCycles, n);
        s
    }

    #[test]
    fn nested_regions_count_their_own_spans_and_calls_add_up() {
        let mut r = Regions::default();
        r.begin("outer".into(), cycles(10));
        r.begin("inner".into(), cycles(20));
        r.end(&cycles(25));
        r.begin("inner".into(), cycles(30));
        r.end(&cycles(33));
        r.end(&cycles(40));
        r.end(&cycles(41));
        let got: Vec<_> =
            r.finish(&cycles(50)).into_iter().map(|r| (r.name, r.calls, r.signals.get(Signal::CpuCycles))).collect();
        assert_eq!(got, [("all".into(), 1, 50), ("inner".into(), 2, 8), ("outer".into(), 1, 30)]);
    }
}
