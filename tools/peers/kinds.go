package main

import (
	volsync "github.com/backube/volsync/api/v1alpha1"
	csiaddons "github.com/csi-addons/kubernetes-csi-addons/api/csiaddons/v1alpha1"
	replication "github.com/csi-addons/kubernetes-csi-addons/api/replication.storage/v1alpha1"
	snapshot "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	cluster "open-cluster-management.io/api/cluster/v1"
	placement "open-cluster-management.io/api/cluster/v1beta1"
	work "open-cluster-management.io/api/work/v1"
	view "open-cluster-management.io/multicloud-operators-subscription/pkg/apis/view/v1beta1"
)

// An empty object of each kind that is judged, by its apiVersion and kind. Built with the tag ramen, Ramen's are here too.
var kinds = map[string]func() any{
	"v1/PersistentVolume":      func() any { return &corev1.PersistentVolume{} },
	"v1/PersistentVolumeClaim": func() any { return &corev1.PersistentVolumeClaim{} },
	"v1/Namespace":             func() any { return &corev1.Namespace{} },
	"v1/ConfigMap":             func() any { return &corev1.ConfigMap{} },
	"v1/Secret":                func() any { return &corev1.Secret{} },
	"v1/Service":               func() any { return &corev1.Service{} },

	"volsync.backube/v1alpha1/ReplicationSource":      func() any { return &volsync.ReplicationSource{} },
	"volsync.backube/v1alpha1/ReplicationDestination": func() any { return &volsync.ReplicationDestination{} },

	"replication.storage.openshift.io/v1alpha1/VolumeReplication":      func() any { return &replication.VolumeReplication{} },
	"replication.storage.openshift.io/v1alpha1/VolumeReplicationClass": func() any { return &replication.VolumeReplicationClass{} },
	"csiaddons.openshift.io/v1alpha1/NetworkFence":                     func() any { return &csiaddons.NetworkFence{} },
	"csiaddons.openshift.io/v1alpha1/NetworkFenceClass":                func() any { return &csiaddons.NetworkFenceClass{} },

	"snapshot.storage.k8s.io/v1/VolumeSnapshot":        func() any { return &snapshot.VolumeSnapshot{} },
	"snapshot.storage.k8s.io/v1/VolumeSnapshotContent": func() any { return &snapshot.VolumeSnapshotContent{} },
	"snapshot.storage.k8s.io/v1/VolumeSnapshotClass":   func() any { return &snapshot.VolumeSnapshotClass{} },

	"cluster.open-cluster-management.io/v1/ManagedCluster":         func() any { return &cluster.ManagedCluster{} },
	"cluster.open-cluster-management.io/v1beta1/Placement":         func() any { return &placement.Placement{} },
	"cluster.open-cluster-management.io/v1beta1/PlacementDecision": func() any { return &placement.PlacementDecision{} },
	"work.open-cluster-management.io/v1/ManifestWork":              func() any { return &work.ManifestWork{} },
	"work.open-cluster-management.io/v1/AppliedManifestWork":       func() any { return &work.AppliedManifestWork{} },
	"view.open-cluster-management.io/v1beta1/ManagedClusterView":   func() any { return &view.ManagedClusterView{} },
}

// What lies within another object: the manifests of a work, the result of a view.
func within(object any) [][]byte {
	var found [][]byte
	switch outer := object.(type) {
	case *work.ManifestWork:
		for _, manifest := range outer.Spec.Workload.Manifests {
			found = append(found, manifest.Raw)
		}
	case *view.ManagedClusterView:
		if len(outer.Status.Result.Raw) > 0 {
			found = append(found, outer.Status.Result.Raw)
		}
	}
	return found
}
