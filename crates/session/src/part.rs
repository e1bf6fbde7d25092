//! The part of a run that is timed, as options say it.

use crate::{Error, PartPlan, Point, Selection, Warming};

/// What options say of the part of a run that is timed. Without any of them, everything is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartOptions {
    /// The region whose executions are timed.
    pub region: Option<String>,
    /// Where the part begins.
    pub from: Option<Point>,
    /// Where it ends.
    pub until: Option<Point>,
    /// How much of what comes before it is followed.
    pub warming: Option<Warming>,
    /// Whether the run ends where the part ends.
    pub stops: bool,
}

impl PartOptions {
    /// Returns the part; `None`: everything is timed.
    ///
    /// # Errors
    /// If two options say what is timed, or none of them does and there is nothing before a part to follow.
    pub fn plan(self) -> Result<Option<PartPlan>, Error> {
        let PartOptions { region, from, until, warming, stops } = self;
        let is_between = from.is_some() || until.is_some();
        let selection = match region {
            Some(_) if is_between => {
                let why = "it says what is timed, as --from and --until do; leave one or the other out";
                return Err(Error::option("region", why));
            }
            Some(name) => Selection::Region(name),
            None if is_between => Selection::Between { from, until },
            None if warming.is_some() => {
                let why = "everything is timed; say from where on with --from, or which region with --region";
                return Err(Error::option("warm", why));
            }
            None => return Ok(None),
        };
        Ok(Some(PartPlan { selection, warming: warming.unwrap_or_default(), stops }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point() -> Point {
        "instructions=5M".parse().expect("a point")
    }

    #[test]
    fn a_region_or_two_points_make_a_part() {
        let region = PartOptions { region: Some("solve".to_owned()), ..PartOptions::default() };
        let solve = PartPlan::new(Selection::Region("solve".to_owned()));
        assert_eq!(region.plan().expect("a part"), Some(solve));
        let between = PartOptions { until: Some(point()), stops: true, ..PartOptions::default() };
        let part = between.plan().expect("a part").expect("not everything");
        assert_eq!(part.selection, Selection::Between { from: None, until: Some(point()) });
        assert!(part.stops);
        assert_eq!(PartOptions::default().plan().expect("everything"), None);
    }

    #[test]
    fn options_that_say_two_things_or_nothing_are_refused() {
        let both = PartOptions { region: Some("solve".to_owned()), from: Some(point()), ..PartOptions::default() };
        let told = both.plan().expect_err("two parts").to_string();
        assert!(told.starts_with("--region: it says what is timed"), "{told}");
        let nothing = PartOptions { warming: Some(Warming::All), ..PartOptions::default() };
        let told = nothing.plan().expect_err("nothing before").to_string();
        assert!(told.starts_with("--warm: everything is timed"), "{told}");
    }
}
