//! Permission to run. Nothing else makes an [`Approved`], and tools run nothing else.

use super::{Policy, Verdict};
use crate::job::Job;

/// A job that the policy judged in the form in which it runs, at the moment it runs.
#[derive(Debug, PartialEq)]
pub(crate) struct Approved<T>(T);

/// The consent to run a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consent {
    /// The model alone: a rule or the mode has to allow it.
    Unasked,
    /// A person approved the job, or asked for it. A denied job stays denied.
    Given,
}

impl Policy {
    /// Approves a job, or says why it must not run.
    pub(crate) fn approve(&self, tool: &str, job: Job, consent: Consent) -> Result<Approved<Job>, String> {
        match (self.judge(tool, &job), consent) {
            (Verdict::Run, _) | (Verdict::Ask, Consent::Given) => Ok(Approved(job)),
            (Verdict::Ask, Consent::Unasked) => Err(format!("{tool} needs permission now, and nobody granted it")),
            (Verdict::Deny(why), _) => Err(why),
        }
    }
}

impl<T> Approved<T> {
    pub(crate) fn into_inner(self) -> T {
        self.0
    }
}

#[cfg(test)]
impl Approved<Job> {
    /// For tests of what tools do, which are not about permission.
    pub(crate) fn in_a_test(job: Job) -> Self {
        Self(job)
    }
}
