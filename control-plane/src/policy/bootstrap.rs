//! A new store: its lineage, and the first policy.

use ulid::Ulid;

use super::{Apply, Error, Policies};
use crate::store::{self, Txn, keys};

impl Policies {
    /// The store's lineage, drawn now when it has none.
    pub(super) async fn lineage(&self) -> Result<String, Error> {
        loop {
            if let Some(entry) = self.store.get(keys::LINEAGE).await? {
                return super::query::parse(keys::LINEAGE, &entry.value);
            }
            let drawn = Ulid::new().to_string();
            let value = serde_json::to_vec(&drawn).expect("a string is JSON");
            match self.store.commit(Txn::default().when(keys::LINEAGE, None).put(keys::LINEAGE, value)).await
            {
                Ok(_) => return Ok(drawn),
                // Another control plane drew one in the same moment.
                Err(store::Error::Conflict) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Makes `document` version 1 if there is no version yet.
    pub(super) async fn apply_first(&self, document: &str) -> Result<(), Error> {
        if self.head().await?.head.stable != 0 {
            return Ok(());
        }
        let first = Apply {
            document: document.as_bytes().to_vec(),
            author: "penstock".to_owned(),
            message: "initial policy".to_owned(),
            expected_version: Some(0),
            ..Apply::default()
        };
        match self.apply(first).await {
            // Somebody else made one in the same moment.
            Ok(_) | Err(Error::Conflict { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
