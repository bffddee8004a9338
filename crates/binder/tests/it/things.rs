//! Claims and volumes in the states that rules speak of.

use k8s_openapi::api::core::v1::{
    EphemeralVolumeSource, ObjectReference, PersistentVolumeClaimTemplate, Pod, Volume,
};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use lifeboat_binder::lean::{
    PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimStatus, PersistentVolumeStatus, Quantities,
};
use lifeboat_binder::words::{BIND_COMPLETED, annotate};
use lifeboat_testbed::fixtures::{self, With};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

/// A claim `ns/c` of one GiB, without a class, that is pending.
pub fn claim() -> PersistentVolumeClaim {
    named_claim("c")
}

pub fn named_claim(name: &str) -> PersistentVolumeClaim {
    new_claim("ns", name).with(|claim| {
        claim.metadata.uid = Some(format!("uid-{name}"));
        claim.spec.as_mut().unwrap().storage_class_name = Some(String::new());
        claim.status =
            Some(PersistentVolumeClaimStatus { phase: Some("Pending".into()), ..Default::default() });
    })
}

/// The fixtures' claim as the binder keeps it.
pub fn new_claim(namespace: &str, name: &str) -> PersistentVolumeClaim {
    serde_json::from_value(serde_json::to_value(fixtures::claim(namespace, name)).unwrap()).unwrap()
}

/// The fixtures' volume as the binder keeps it.
pub fn new_volume(name: &str) -> PersistentVolume {
    serde_json::from_value(serde_json::to_value(fixtures::volume(name)).unwrap()).unwrap()
}

/// A volume of one GiB, without a class, that is available.
pub fn volume(name: &str) -> PersistentVolume {
    new_volume(name).with(|volume| {
        volume.metadata.uid = Some(format!("uid-{name}"));
        volume.spec.as_mut().unwrap().storage_class_name = None;
        volume.status =
            Some(PersistentVolumeStatus { phase: Some("Available".into()), ..Default::default() });
    })
}

pub fn class(name: &str, provisioner: &str) -> StorageClass {
    fixtures::storage_class(name).with(|class| class.provisioner = provisioner.to_owned())
}

pub fn delayed(name: &str, provisioner: &str) -> StorageClass {
    class(name, provisioner).with(|class| class.volume_binding_mode = Some("WaitForFirstConsumer".to_owned()))
}

/// What a pod says that wants a claim like this for itself.
pub fn template(claim: &PersistentVolumeClaim) -> PersistentVolumeClaimTemplate {
    let spec = serde_json::to_value(&claim.spec).unwrap();
    PersistentVolumeClaimTemplate { metadata: None, spec: serde_json::from_value(spec).unwrap() }
}

/// A pod with a volume `scratch` of its own, claimed like this.
pub fn with_scratch(pod: Pod, claim: &PersistentVolumeClaim) -> Pod {
    let template = template(claim);
    pod.with(|pod| {
        pod.spec.as_mut().unwrap().volumes.get_or_insert_default().push(Volume {
            name: "scratch".to_owned(),
            ephemeral: Some(EphemeralVolumeSource { volume_claim_template: Some(template) }),
            ..Volume::default()
        });
    })
}

/// So much storage.
pub fn room(size: &str) -> Quantities {
    let mut room = Quantities::default();
    room.put("storage", Quantity(size.to_owned()));
    room
}

/// Short changes to a claim.
pub trait ClaimThings: With + Sized {
    fn of_class(self, class: Option<&str>) -> Self;
    fn naming(self, volume: &str) -> Self;
    fn completed(self) -> Self;
    fn in_phase(self, phase: &str) -> Self;
    fn noted(self, key: &str, value: &str) -> Self;
    fn sized(self, size: &str) -> Self;
    fn of_mode(self, mode: &str) -> Self;
    fn attributes(self, class: &str) -> Self;
    fn access(self, modes: &[&str]) -> Self;
}

macro_rules! things {
    ($kind:ty) => {
        fn of_class(mut self, class: Option<&str>) -> Self {
            self.spec.as_mut().unwrap().storage_class_name = class.map(str::to_owned);
            self
        }
        fn in_phase(mut self, phase: &str) -> Self {
            self.status.as_mut().unwrap().phase = Some(phase.to_owned());
            self
        }
        fn noted(mut self, key: &str, value: &str) -> Self {
            annotate(&mut self.metadata, key, value);
            self
        }
        fn of_mode(mut self, mode: &str) -> Self {
            self.spec.as_mut().unwrap().volume_mode = Some(mode.to_owned());
            self
        }
        fn attributes(mut self, class: &str) -> Self {
            self.spec.as_mut().unwrap().volume_attributes_class_name = Some(class.to_owned());
            self
        }
        fn access(mut self, modes: &[&str]) -> Self {
            self.spec.as_mut().unwrap().access_modes =
                Some(modes.iter().map(|mode| (*mode).to_owned()).collect());
            self
        }
    };
}

impl ClaimThings for PersistentVolumeClaim {
    things!(PersistentVolumeClaim);
    fn naming(mut self, volume: &str) -> Self {
        self.spec.as_mut().unwrap().volume_name = Some(volume.to_owned());
        self
    }
    fn completed(self) -> Self {
        self.noted(BIND_COMPLETED, "yes")
    }
    fn sized(mut self, size: &str) -> Self {
        self.spec.as_mut().unwrap().resources.as_mut().unwrap().requests = Some(room(size));
        self
    }
}

/// Short changes to a volume.
pub trait VolumeThings: Sized {
    fn of_class(self, class: Option<&str>) -> Self;
    fn for_claim(self, name: &str, uid: &str) -> Self;
    fn in_phase(self, phase: &str) -> Self;
    fn noted(self, key: &str, value: &str) -> Self;
    fn sized(self, size: &str) -> Self;
    fn of_mode(self, mode: &str) -> Self;
    fn attributes(self, class: &str) -> Self;
    fn access(self, modes: &[&str]) -> Self;
    fn policy(self, policy: &str) -> Self;
    fn csi(self, driver: &str) -> Self;
    /// On storage of this kind and no other.
    fn stored(self, source: &str, value: &Value) -> Self;
    fn deleting(self) -> Self;
    fn finalizer(self, name: &str) -> Self;
    fn on_node(self, name: &str) -> Self;
}

impl VolumeThings for PersistentVolume {
    things!(PersistentVolume);
    fn for_claim(mut self, name: &str, uid: &str) -> Self {
        self.spec.as_mut().unwrap().claim_ref = Some(ObjectReference {
            kind: Some("PersistentVolumeClaim".into()),
            api_version: Some("v1".into()),
            namespace: Some("ns".into()),
            name: Some(name.to_owned()),
            uid: (!uid.is_empty()).then(|| uid.to_owned()),
            ..Default::default()
        });
        self
    }
    fn sized(mut self, size: &str) -> Self {
        self.spec.as_mut().unwrap().capacity = Some(room(size));
        self
    }
    fn policy(mut self, policy: &str) -> Self {
        self.spec.as_mut().unwrap().persistent_volume_reclaim_policy = Some(policy.to_owned());
        self
    }
    fn csi(self, driver: &str) -> Self {
        let handle = self.metadata.name.clone();
        self.stored("csi", &json!({"driver": driver, "volumeHandle": handle}))
    }
    fn stored(mut self, source: &str, value: &Value) -> Self {
        let others = &mut self.spec.as_mut().unwrap().others;
        for before in ["hostPath", "csi"] {
            others.put(before, to_raw_value(&Value::Null).unwrap());
        }
        others.put(source, to_raw_value(value).unwrap());
        self
    }
    fn deleting(mut self) -> Self {
        self.metadata.deletion_timestamp = Some(Time(jiff::Timestamp::UNIX_EPOCH));
        self
    }
    fn finalizer(mut self, name: &str) -> Self {
        self.metadata.finalizers.get_or_insert_default().push(name.to_owned());
        self
    }
    fn on_node(mut self, name: &str) -> Self {
        let is = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [name]});
        let affinity = json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [is]}]}});
        self.spec.as_mut().unwrap().others.put("nodeAffinity", to_raw_value(&affinity).unwrap());
        self
    }
}
