//go:build !ramen

package main

const ramenTypes = false

// sampleGroup is a group by its fields alone.
func sampleGroup(namespace, name string) any {
	return map[string]any{
		"kind": "VolumeReplicationGroup", "apiVersion": "ramendr.openshift.io/v1alpha1",
		"metadata": map[string]any{"name": name, "namespace": namespace, "creationTimestamp": nil},
		"spec": map[string]any{
			"pvcSelector":      map[string]any{"matchLabels": map[string]any{"app": "shop"}},
			"replicationState": "primary", "s3Profiles": []any{"east", "west"},
			"async": map[string]any{"replicationClassSelector": map[string]any{}, "schedulingInterval": "5m"},
		},
		"status": map[string]any{
			"state": "Primary", "lastUpdateTime": "2026-01-02T03:04:05Z", "kubeObjectProtection": map[string]any{},
		},
	}
}
