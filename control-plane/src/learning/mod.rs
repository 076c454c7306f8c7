//! What the control plane learns from a policy's examples: the model that tells capabilities apart.
//!
//! A version is published together with its model, so that what a version decides never changes. Training is a matter of
//! a second, on a thread that serves nobody; meanwhile the fleet serves the version before. What was trained is stored
//! under the hash of what it was trained from: versions with the same examples share it, a rollback finds it, and of
//! several control planes one trains and the others read.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use penstock_decision::classifier::{Examples, Model, Settings, train};
use penstock_model::Policy;

use crate::store::{self, Entry, Store, Txn, keys};

const KIND: &str = "capability";

/// The encoded model for the capabilities of `policy`; empty when there is none, or nothing to train it from. A store that
/// fails costs a training, not the model.
pub(crate) async fn capability_model(store: &dyn Store, policy: Option<&Arc<Policy>>) -> Bytes {
    let Some(policy) = policy else { return Bytes::new() };
    let settings = Settings::default();
    let Some(hash) = Examples::of(policy).map(|examples| examples.hash(&settings)) else {
        return Bytes::new();
    };
    let key = keys::model(KIND, &hash);
    let stored = store.get(&key).await.unwrap_or_else(|error| {
        tracing::warn!(error = &error as &dyn std::error::Error, "cannot look for a stored capability model");
        None
    });
    if let Some(entry) = stored.as_ref().filter(|entry| is_good(entry, &hash)) {
        return entry.value.clone();
    }
    let model = train_aside(Arc::clone(policy), settings).await;
    keep(store, &key, stored.map(|entry| entry.revision), &model).await;
    model
}

/// Is what is stored the model that its key promises?
fn is_good(entry: &Entry, hash: &str) -> bool {
    match Model::decode(&entry.value) {
        Ok(model) => model.trained_from() == hash,
        Err(error) => {
            tracing::warn!(key = entry.key, %error, "the stored capability model is trained anew");
            false
        }
    }
}

async fn train_aside(policy: Arc<Policy>, settings: Settings) -> Bytes {
    let trained = tokio::task::spawn_blocking(move || {
        let started = Instant::now();
        let model =
            Examples::of(&policy).map(|examples| train(&examples, &settings).encode()).unwrap_or_default();
        tracing::info!(bytes = model.len(), took = ?started.elapsed(), "capability model trained");
        model
    });
    trained.await.expect("training does not panic").into()
}

async fn keep(store: &dyn Store, key: &str, revision: Option<u64>, model: &Bytes) {
    match store.commit(Txn::default().when(key, revision).put(key, model.clone())).await {
        // In a conflict another control plane has stored the same model.
        Ok(_) | Err(store::Error::Conflict) => {}
        Err(error) => tracing::warn!(
            error = &error as &dyn std::error::Error,
            "the capability model cannot be stored; the next control plane trains it again"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Embedded;

    fn policy(fruit: &str) -> Arc<Policy> {
        let document = format!(
            "
version: 1
capabilities:
  fruit: {{default: true, examples: [{fruit}, pear, 苹果]}}
  tools: {{examples: [hammer, saw, 锤子]}}
  empty: {{}}
backends:
  a: {{provider: openai, base_url: \"http://127.0.0.1:1/v1\", capabilities: [fruit, tools, empty], models: [{{name: m}}]}}
routes: [{{name: rest}}]
"
        );
        Arc::new(penstock_model::load(&document).policy.unwrap())
    }

    async fn store(folder: &tempfile::TempDir) -> Embedded {
        Embedded::open(folder.path().join("store")).await.unwrap()
    }

    fn key_of(model: &[u8]) -> String {
        keys::model(KIND, Model::decode(model).unwrap().trained_from())
    }

    #[tokio::test]
    async fn a_model_is_trained_once_for_the_same_examples() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder).await;
        let first = capability_model(&store, Some(&policy("apple"))).await;
        let stored = store.get(&key_of(&first)).await.unwrap().unwrap();
        assert_eq!(stored.value, first);
        assert_eq!(capability_model(&store, Some(&policy("apple"))).await, first);
        let other = capability_model(&store, Some(&policy("cherry"))).await;
        assert_ne!(other, first);
        assert_eq!(capability_model(&store, Some(&policy("apple"))).await, first);
        assert_eq!(store.get(&key_of(&first)).await.unwrap().unwrap().revision, stored.revision);
    }

    #[tokio::test]
    async fn a_damaged_model_in_the_store_is_trained_anew_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder).await;
        let good = capability_model(&store, Some(&policy("apple"))).await;
        let key = key_of(&good);
        let misplaced = capability_model(&store, Some(&policy("cherry"))).await;
        for bad in [Bytes::from_static(b"half a model"), misplaced] {
            store.commit(Txn::default().put(&key, bad)).await.unwrap();
            assert_eq!(capability_model(&store, Some(&policy("apple"))).await, good);
            assert_eq!(store.get(&key).await.unwrap().unwrap().value, good);
        }
    }

    #[tokio::test]
    async fn without_a_store_there_is_a_model_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder).await;
        let good = capability_model(&store, Some(&policy("apple"))).await;
        store.close().await;
        assert_eq!(capability_model(&store, Some(&policy("apple"))).await, good);
    }

    #[tokio::test]
    async fn examples_of_one_capability_alone_train_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(&folder).await;
        let demo = penstock_model::load(
            "
version: 1
capabilities: {fruit: {default: true, examples: [apple, pear]}}
backends: {a: {provider: openai, base_url: \"http://127.0.0.1:1/v1\", capabilities: [fruit], models: [{name: m}]}}
routes: [{name: rest}]
",
        );
        assert!(capability_model(&store, demo.policy.map(Arc::new).as_ref()).await.is_empty());
        assert!(capability_model(&store, None).await.is_empty());
    }
}
