//! Which part of a run was timed.

/// The part of a run that its counts are about.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Part {
    /// The part as the options of `fxscope run` that select it, such as `--from function=solve#2 --until function=solve`.
    pub options: String,
    /// Instructions that were executed before it without a model.
    pub skipped: u64,
    /// Instructions of which caches and other long-lived state were kept up to date, before it and between its executions.
    pub followed: u64,
    /// Instructions of the part.
    pub timed: u64,
    /// Instructions that were executed behind it without a model.
    pub behind: u64,
    /// How often it was executed; 0: it never began, and nothing was timed.
    pub executions: u64,
    /// Simulated time when it first began, ns.
    pub begin_ns: u64,
    /// Whether its end came before that of the run.
    pub ended: bool,
}

impl Part {
    /// Returns the number of all instructions of the run.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        [self.skipped, self.followed, self.timed, self.behind].into_iter().fold(0, u64::saturating_add)
    }

    /// Returns a warning about a part that never began; `None`: it began.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let options = &self.options;
        (self.executions == 0)
            .then(|| format!("{options}: the part never began, and nothing was timed; check the name, or the number"))
    }

    /// Returns the share of the instructions of the run that are in the part, 0 to 1.
    #[must_use]
    pub fn timed_share(&self) -> f64 {
        self.timed as f64 / self.instructions().max(1) as f64
    }
}
