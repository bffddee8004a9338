//! Rights as they are in production: a controller under test acts as the account of its manifest, so that a right that is missing there fails
//! here first.

use crate::Cluster;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind, TypeMeta};
use lifeboat_apiserver::User;
use std::path::Path;

/// The namespace of the manifests.
const NAMESPACE: &str = "lifeboat-system";
/// What says who may do what; the rest of a manifest runs things.
const RIGHTS: [&str; 5] = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];

/// The account of a manifest.
pub(crate) fn user(name: &str) -> User {
    User::service_account(NAMESPACE, &format!("lifeboat-{name}"), "")
}

impl Cluster {
    /// A client with the rights that `deploy/NAME.yaml` gives its account, and no others.
    ///
    /// # Panics
    /// When the manifest cannot be applied.
    pub async fn account(&self, name: &str) -> kube::Client {
        self.give_rights(name).await;
        self.client_as(&user(name)).await
    }

    pub(crate) async fn give_rights(&self, name: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(format!("{name}.yaml"));
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("reading {}: {error}", path.display()));
        let objects: Vec<DynamicObject> = serde_saphyr::from_multiple(&text)
            .unwrap_or_else(|error| panic!("reading {}: {error}", path.display()));
        self.ensure_namespace(NAMESPACE).await;
        for object in objects {
            let types = object.types.clone().unwrap_or_default();
            if RIGHTS.contains(&types.kind.as_str()) {
                self.apply(&object, &types).await;
            }
        }
    }

    async fn apply(&self, object: &DynamicObject, types: &TypeMeta) {
        let kind = GroupVersionKind::try_from(types).expect("a manifest names its kind");
        let resource = ApiResource::from_gvk(&kind);
        let api: Api<DynamicObject> = match &object.metadata.namespace {
            Some(namespace) => {
                self.ensure_namespace(namespace).await;
                Api::namespaced_with(self.client(), namespace, &resource)
            }
            None => Api::all_with(self.client(), &resource),
        };
        let name = object.metadata.name.clone().unwrap_or_default();
        let params = PatchParams::apply("lifeboat-testbed").force();
        let applied = api.patch(&name, &params, &Patch::Apply(object)).await;
        applied.unwrap_or_else(|error| panic!("applying {} {name}: {error}", kind.kind));
    }
}
