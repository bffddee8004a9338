//go:build ramen

package main

import (
	ramen "github.com/ramendr/ramen/api/v1alpha1"
)

func init() {
	ramenTypes = true
	newConfig = func() any { return &ramen.RamenConfig{} }
	group := "ramendr.openshift.io/v1alpha1/"
	kinds[group+"VolumeReplicationGroup"] = func() any { return &ramen.VolumeReplicationGroup{} }
	kinds[group+"DRPlacementControl"] = func() any { return &ramen.DRPlacementControl{} }
	kinds[group+"DRPolicy"] = func() any { return &ramen.DRPolicy{} }
	kinds[group+"DRCluster"] = func() any { return &ramen.DRCluster{} }
	kinds[group+"DRClusterConfig"] = func() any { return &ramen.DRClusterConfig{} }
	kinds[group+"MaintenanceMode"] = func() any { return &ramen.MaintenanceMode{} }
	kinds[group+"ProtectedVolumeReplicationGroupList"] = func() any {
		return &ramen.ProtectedVolumeReplicationGroupList{}
	}
}
