//! Options of predictions of slower memory.

use fxscope::lab::latency::{PredictOptions, cores, nanoseconds};

/// What to predict, and for which part of a program.
#[derive(Clone, clap::Args)]
pub(crate) struct PredictArgs {
    /// Memory latencies to predict for, nanoseconds from a load to its use. Default: those of the published study: 300,
    /// 500, 750 and 1,000.
    #[arg(long, value_name = "NS", value_delimiter = ',', value_parser = nanoseconds)]
    latencies: Vec<f64>,
    /// Look at this region of the program only.
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    /// Number of cores that worked at a time, where the record does not say.
    #[arg(long, value_name = "N", value_parser = cores)]
    threads: Option<f64>,
}

impl PredictArgs {
    /// Returns what the options ask for.
    pub(crate) fn options(&self) -> PredictOptions {
        PredictOptions { latencies: self.latencies.clone(), region: self.region.clone(), threads: self.threads }
    }
}
