//! The verdict, first in each report.

use fxscope_pmu::Evaluation;
use fxscope_record::{Region, Run};

use crate::document::{Body, Section};
use crate::verdict::{self, Hottest};

/// Returns the section with the verdict on a region, if there is one.
pub(crate) fn section(run: &Run, region: &Region, evaluation: &Evaluation, hottest: Hottest) -> Option<Section> {
    let verdict = verdict::verdict(run, region, evaluation, hottest)?;
    Some(Section { title: "Verdict".to_owned(), body: Body::Verdict(Box::new(verdict)) })
}
