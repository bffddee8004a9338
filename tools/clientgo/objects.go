package main

import (
	"context"
	"encoding/json"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func discovery(_ context.Context, c *cluster) error {
	version, err := c.json.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	if version.Major != "1" {
		return fmt.Errorf("the server calls itself %q", version)
	}
	groups, err := restmapper.GetAPIGroupResources(c.json.Discovery())
	if err != nil {
		return err
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	for kind, plural := range map[schema.GroupKind]string{
		{Kind: "PersistentVolumeClaim"}:                              "persistentvolumeclaims",
		{Group: "storage.k8s.io", Kind: "StorageClass"}:              "storageclasses",
		{Group: "coordination.k8s.io", Kind: "Lease"}:                "leases",
		{Group: "apps", Kind: "Deployment"}:                          "deployments",
		{Group: "rbac.authorization.k8s.io", Kind: "Role"}:           "roles",
		{Group: "apiextensions.k8s.io", Kind: crdKind}:               "customresourcedefinitions",
		{Group: "storage.k8s.io", Kind: "VolumeAttachment"}:          "volumeattachments",
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:    "clusterroles",
		{Group: "storage.k8s.io", Kind: "CSIStorageCapacity"}:        "csistoragecapacities",
		{Kind: "PersistentVolume"}:                                   "persistentvolumes",
		{Group: "batch", Kind: "Job"}:                                "jobs",
		{Group: "authentication.k8s.io", Kind: "TokenReview"}:        "tokenreviews",
		{Group: "authorization.k8s.io", Kind: "SubjectAccessReview"}: "subjectaccessreviews",
	} {
		mapping, err := mapper.RESTMapping(kind)
		if err != nil {
			return err
		}
		if mapping.Resource.Resource != plural {
			return fmt.Errorf("%s is served as %s", kind, mapping.Resource.Resource)
		}
	}
	return nil
}

// typed creates with one encoding and reads with both: what comes back must be the same.
func typed(ctx context.Context, c *cluster) error {
	for name, client := range map[string]kubernetes.Interface{"json": c.json, "protobuf": c.proto} {
		if err := typedObjects(ctx, c, client, name); err != nil {
			return fmt.Errorf("created over %s: %w", name, err)
		}
	}
	return nil
}

func typedObjects(ctx context.Context, c *cluster, client kubernetes.Interface, name string) error {
	meta := metav1.ObjectMeta{Name: "typed-" + name, Labels: map[string]string{"made": name}}
	create := metav1.CreateOptions{}
	secret, err := client.CoreV1().Secrets(c.namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: meta, Data: map[string][]byte{"key": {0, 1, 254, 255}},
	}, create)
	if err != nil {
		return err
	}
	if secret.Type != corev1.SecretTypeOpaque || secret.UID == "" || secret.ResourceVersion == "" {
		return fmt.Errorf("a secret came back without its defaults: %+v", secret)
	}
	class := "none"
	_, err = client.CoreV1().PersistentVolumeClaims(c.namespace).Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: meta,
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: &class,
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			},
		},
	}, create)
	if err != nil {
		return err
	}
	expand := true
	if _, err = client.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta: meta, Provisioner: "example.com/none", AllowVolumeExpansion: &expand,
	}, create); err != nil {
		return err
	}
	defer client.StorageV1().StorageClasses().Delete(ctx, meta.Name, metav1.DeleteOptions{})
	if _, err = client.CoordinationV1().Leases(c.namespace).Create(ctx, &coordinationv1.Lease{ObjectMeta: meta}, create); err != nil {
		return err
	}
	if _, err = client.CoreV1().Pods(c.namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: meta,
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/none"}}},
	}, create); err != nil {
		return err
	}
	claims, err := same(
		func(client kubernetes.Interface) (*corev1.PersistentVolumeClaim, error) {
			return client.CoreV1().PersistentVolumeClaims(c.namespace).Get(ctx, meta.Name, metav1.GetOptions{})
		}, c)
	if err != nil {
		return err
	}
	if claims.Spec.VolumeMode == nil || *claims.Spec.VolumeMode != corev1.PersistentVolumeFilesystem {
		return fmt.Errorf("a claim has no default volume mode")
	}
	if claims.Status.Phase != corev1.ClaimPending {
		return fmt.Errorf("a new claim is %q", claims.Status.Phase)
	}
	pod, err := same(func(client kubernetes.Interface) (*corev1.Pod, error) {
		return client.CoreV1().Pods(c.namespace).Get(ctx, meta.Name, metav1.GetOptions{})
	}, c)
	if err != nil {
		return err
	}
	if pod.Spec.RestartPolicy != corev1.RestartPolicyAlways || pod.Status.Phase != corev1.PodPending {
		return fmt.Errorf("a pod came back without its defaults")
	}
	_, err = same(func(client kubernetes.Interface) (*corev1.SecretList, error) {
		return client.CoreV1().Secrets(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: "made=" + name})
	}, c)
	return err
}

// same reads over both encodings and compares.
func same[T any](read func(kubernetes.Interface) (*T, error), c *cluster) (*T, error) {
	plain, err := read(c.json)
	if err != nil {
		return nil, err
	}
	binary, err := read(c.proto)
	if err != nil {
		return nil, err
	}
	if !equality.Semantic.DeepEqual(plain, binary) {
		return nil, fmt.Errorf("JSON gives %+v, protobuf gives %+v", plain, binary)
	}
	return plain, nil
}

func conflicts(ctx context.Context, c *cluster) error {
	maps := c.json.CoreV1().ConfigMaps(c.namespace)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "conflicts"}}
	first, err := maps.Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if _, err = maps.Create(ctx, object, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("a second create gives %v", err)
	}
	changed := first.DeepCopy()
	changed.Data = map[string]string{"a": "1"}
	if _, err = maps.Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if _, err = maps.Update(ctx, changed, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		return fmt.Errorf("a stale update gives %v", err)
	}
	other := types.UID("someone-else")
	err = maps.Delete(ctx, first.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}})
	if !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting another uid gives %v", err)
	}
	if err = maps.Delete(ctx, first.Name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	if _, err = maps.Get(ctx, first.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("a deleted object gives %v", err)
	}
	bad := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "Not A Name"}}
	if _, err = maps.Create(ctx, bad, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		return fmt.Errorf("a bad name gives %v", err)
	}
	return nil
}

func pages(ctx context.Context, c *cluster) error {
	maps := c.proto.CoreV1().ConfigMaps(c.namespace)
	for i := range 7 {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("page-%d", i), Labels: map[string]string{"set": "pages"},
		}}
		if _, err := maps.Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	seen, options := 0, metav1.ListOptions{Limit: 3, LabelSelector: "set=pages"}
	for {
		list, err := maps.List(ctx, options)
		if err != nil {
			return err
		}
		if len(list.Items) > 3 {
			return fmt.Errorf("a page of %d", len(list.Items))
		}
		seen += len(list.Items)
		if list.Continue == "" {
			break
		}
		options.Continue = list.Continue
	}
	if seen != 7 {
		return fmt.Errorf("%d of 7 in pages", seen)
	}
	if err := maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "set=pages"}); err != nil {
		return err
	}
	list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "set=pages"})
	if err == nil && len(list.Items) > 0 {
		err = fmt.Errorf("%d left after deleting the collection", len(list.Items))
	}
	return err
}

func apply(ctx context.Context, c *cluster) error {
	maps := c.proto.CoreV1().ConfigMaps(c.namespace)
	wanted := func(data map[string]string) *applycorev1.ConfigMapApplyConfiguration {
		return applycorev1.ConfigMap("applied", c.namespace).WithData(data)
	}
	one, two := metav1.ApplyOptions{FieldManager: "one"}, metav1.ApplyOptions{FieldManager: "two"}
	if _, err := maps.Apply(ctx, wanted(map[string]string{"a": "1", "b": "1"}), one); err != nil {
		return err
	}
	if _, err := maps.Apply(ctx, wanted(map[string]string{"c": "2"}), two); err != nil {
		return err
	}
	if _, err := maps.Apply(ctx, wanted(map[string]string{"a": "2", "c": "2"}), two); !apierrors.IsConflict(err) {
		return fmt.Errorf("taking another manager's field gives %v", err)
	}
	two.Force = true
	if _, err := maps.Apply(ctx, wanted(map[string]string{"a": "2", "c": "2"}), two); err != nil {
		return err
	}
	// "one" no longer wants b, and a is no longer its own.
	object, err := maps.Apply(ctx, wanted(map[string]string{}), one)
	if err != nil {
		return err
	}
	if want := map[string]string{"a": "2", "c": "2"}; !equality.Semantic.DeepEqual(object.Data, want) {
		return fmt.Errorf("the data is %v, not %v", object.Data, want)
	}
	taken, err := applycorev1.ExtractConfigMap(object, "two")
	if err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(taken.Data, map[string]string{"a": "2", "c": "2"}) {
		return fmt.Errorf("the fields of a manager are %v", taken.Data)
	}
	return nil
}

func patches(ctx context.Context, c *cluster) error {
	pods := c.json.CoreV1().Pods(c.namespace)
	_, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "patched"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "one", Image: "a"}, {Name: "two", Image: "b"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	strategic, err := json.Marshal(map[string]any{"spec": map[string]any{
		"containers": []map[string]string{{"name": "two", "image": "c"}},
	}})
	if err != nil {
		return err
	}
	for kind, patch := range map[types.PatchType]string{
		types.StrategicMergePatchType: string(strategic),
		types.MergePatchType:          `{"metadata": {"labels": {"merged": "yes"}}}`,
		types.JSONPatchType:           `[{"op": "add", "path": "/metadata/annotations", "value": {"json": "yes"}}]`,
	} {
		if _, err := pods.Patch(ctx, "patched", kind, []byte(patch), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	pod, err := pods.Get(ctx, "patched", metav1.GetOptions{})
	if err != nil {
		return err
	}
	images := []string{}
	for _, container := range pod.Spec.Containers {
		images = append(images, container.Image)
	}
	if !equality.Semantic.DeepEqual(images, []string{"a", "c"}) || pod.Labels["merged"] != "yes" || pod.Annotations["json"] != "yes" {
		return fmt.Errorf("after the patches: images %v, labels %v, annotations %v", images, pod.Labels, pod.Annotations)
	}
	return nil
}
