package main

import (
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const count = 3

// group writes an application of a few claims, as a primary of Ramen's leaves it.
func group(store, namespace, name string, told *report) error {
	prefix := namespace + "/" + name + "/"
	put := func(suffix string, object any) error {
		kind := reflect.TypeOf(object).String()
		if suffix == "a" {
			kind = groupType
		}
		told.Records[kind]++
		return upload(store, prefix+kind+"/"+suffix, object)
	}
	for index := range count {
		volume, claim := pair(namespace, index)
		if err := put(volume.Name, volume); err != nil {
			return err
		}
		suffix := types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}.String()
		if index == count-1 {
			// Older releases left the namespace out.
			suffix = claim.Name
		}
		if err := put(suffix, claim); err != nil {
			return err
		}
	}
	return put("a", sampleGroup(namespace, name))
}

func pair(namespace string, index int) (corev1.PersistentVolume, corev1.PersistentVolumeClaim) {
	block := corev1.PersistentVolumeBlock
	class := "fast <&> \u2028 odd"
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(fmt.Sprintf("%dMi", 1536+index))}
	volume, claim := fmt.Sprintf("pv-%d", index), fmt.Sprintf("claim-%d", index)
	made := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 999, time.UTC))
	return corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{
				Name: volume, UID: "uid-of-volume", ResourceVersion: "77", CreationTimestamp: made,
				Annotations: map[string]string{
					"ramendr.openshift.io/destination-volume-handle":           "handle-at-the-peer-" + claim,
					"volumereplicationgroups.ramendr.openshift.io/vr-retained": "retained",
				},
				Finalizers: []string{"kubernetes.io/pv-protection"},
				ManagedFields: []metav1.ManagedFieldsEntry{{
					Manager: "kube-controller-manager", Operation: metav1.ManagedFieldsOperationUpdate,
					FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{".":{}}}`)}, Time: &made,
				}},
			},
			Spec: corev1.PersistentVolumeSpec{
				Capacity:                      size,
				AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
				StorageClassName:              class,
				VolumeMode:                    &block,
				ClaimRef: &corev1.ObjectReference{
					Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: namespace, Name: claim,
					UID: "uid-of-claim", ResourceVersion: "76",
				},
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
					Driver: "csi.example.com", VolumeHandle: "handle-" + claim,
					VolumeAttributes:          map[string]string{"clusterID": "east"},
					ControllerExpandSecretRef: &corev1.SecretReference{Name: "expand", Namespace: "storage"},
				}},
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{}},
			},
			Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound, LastPhaseTransitionTime: &made},
		}, corev1.PersistentVolumeClaim{
			TypeMeta: metav1.TypeMeta{Kind: "PersistentVolumeClaim", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{
				Name: claim, Namespace: namespace, UID: "uid-of-claim", ResourceVersion: "76", CreationTimestamp: made,
				Labels:      map[string]string{"app": "shop"},
				Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes", "user": "note"},
				Finalizers:  []string{"volumereplicationgroups.ramendr.openshift.io/pvc-vr-protection"},
			},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: size},
				VolumeName:  volume, StorageClassName: &class, VolumeMode: &block,
				DataSource: &corev1.TypedLocalObjectReference{Kind: "VolumeSnapshot", Name: "s"},
			},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: size},
		}
}
