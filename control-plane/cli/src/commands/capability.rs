//! `penstock capability`.

pub(crate) mod explain;
pub(crate) mod report;
mod test;

use std::path::PathBuf;

use clap::Subcommand;
use penstock_decision::capability::Classifier;
use penstock_decision::classifier::{Examples, Settings, checksum, train};
use penstock_model::Policy;
use penstock_proto::admin::v1::GetPolicyVersionRequest;

use super::policy::validate;
use crate::client::{Client, ServerArgs};
use crate::failure::Failure;
use crate::run::Context;

/// Say how well a policy's capabilities are told apart, and why
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Test(test::Args),
    Explain(explain::Args),
}

impl Command {
    pub(super) fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Test(args) => test::run(&args, context),
            Self::Explain(args) => explain::run(&args, context),
        }
    }
}

/// Whose capabilities.
#[derive(Debug, clap::Args)]
pub(crate) struct SourceArgs {
    /// A policy document, YAML or JSON, instead of the one that the control plane serves
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    #[command(flatten)]
    server: ServerArgs,
    /// The policy's name; one control plane can hold several
    #[arg(long, env = "PENSTOCK_POLICY_NAME", value_name = "NAME", default_value = "default")]
    policy_name: String,
}

/// A policy and the classifier that proxies make of it.
pub(crate) struct Subject {
    /// Where the policy came from.
    pub(crate) origin: String,
    pub(crate) policy: Policy,
    pub(crate) classifier: Classifier,
    /// The checksum of the model; empty when there are too few examples for one.
    pub(crate) model: String,
}

impl SourceArgs {
    /// Reads the policy and trains its model here: the same examples give the same model everywhere.
    fn subject(&self, context: &Context) -> Result<Subject, Failure> {
        let (origin, document) = match &self.policy {
            Some(file) => (file.display().to_string(), validate::read(file)?),
            None => self.fetch(context)?,
        };
        let loaded = penstock_model::load(&document);
        let Some(policy) = loaded.policy else {
            validate::refuse(&origin, &document, &loaded.problems, context)?;
            return Err(Failure::InvalidPolicy { file: origin, errors: 1 });
        };
        let encoded = Examples::of(&policy).map(|examples| train(&examples, &Settings::default()));
        let model = encoded.as_ref().map(|model| checksum(&model.encode())).unwrap_or_default();
        let classifier = Classifier::new(&policy, encoded);
        Ok(Subject { origin, policy, classifier, model })
    }

    fn fetch(&self, context: &Context) -> Result<(String, String), Failure> {
        let request = GetPolicyVersionRequest { policy: self.policy_name.clone(), version: 0 };
        let response = context.block_on(async {
            let client = Client::connect(&self.server.server).await?;
            let response = client.policies().get_policy_version(request).await;
            response.map_err(|status| client.failure(&status))
        })?;
        let response = response.into_inner();
        let version = response.version.map(|version| version.version).unwrap_or_default();
        let document = String::from_utf8_lossy(&response.document).into_owned();
        Ok((format!("{} version {version}", self.policy_name), document))
    }
}
