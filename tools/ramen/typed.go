//go:build ramen

package main

import (
	"reflect"
	"time"

	ramen "github.com/ramendr/ramen/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const ramenTypes = true

func init() {
	newGroup = func() any { return &ramen.VolumeReplicationGroup{} }
	groupType = reflect.TypeOf(ramen.VolumeReplicationGroup{}).String()
}

// sampleGroup is a group in Ramen's own type.
func sampleGroup(namespace, name string) any {
	made := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	return ramen.VolumeReplicationGroup{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, CreationTimestamp: made},
		Spec: ramen.VolumeReplicationGroupSpec{
			PVCSelector:      metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}},
			ReplicationState: ramen.Primary,
			S3Profiles:       []string{"east", "west"},
			Async:            &ramen.VRGAsyncSpec{SchedulingInterval: "5m"},
			VolSync:          ramen.VolSyncSpec{},
		},
		Status: ramen.VolumeReplicationGroupStatus{
			State:          ramen.PrimaryState,
			LastUpdateTime: made,
			ProtectedPVCs:  []ramen.ProtectedPVC{{Namespace: namespace, Name: "claim-0", ProtectedByVolSync: false}},
		},
	}
}
