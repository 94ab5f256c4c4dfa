package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// A Connection is to an API server. Its mapper knows what was served when it began.
type Connection struct {
	Config    *rest.Config
	Namespace string // of namespaced policies that are named without one
	Dynamic   dynamic.Interface
	Mapper    meta.RESTMapper
	Groups    []*restmapper.APIGroupResources // that are served
	Release   string                          // for instance 1.36
}

// Connect asks the API server what it serves, so that it is known to answer.
func Connect(config *rest.Config, namespace string) (*Connection, error) {
	c := &Connection{Config: config, Namespace: namespace}
	return c, c.discover()
}

func (c *Connection) discover() error {
	client, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return err
	}
	version, err := client.ServerVersion()
	if err != nil {
		return err
	}
	var major, minor int
	if _, err := fmt.Sscanf(version.Major+"."+version.Minor, "%d.%d", &major, &minor); err != nil {
		return fmt.Errorf("its version %s.%s is none", version.Major, version.Minor)
	}
	c.Release = fmt.Sprintf("%d.%d", major, minor)
	asked := &discovered{DiscoveryClient: client}
	if c.Groups, err = restmapper.GetAPIGroupResources(asked); err != nil {
		return err
	}
	if err := asked.silentOfPolicies(); err != nil {
		return err
	}
	c.Mapper = restmapper.NewDiscoveryRESTMapper(c.Groups)
	c.Dynamic, err = dynamic.NewForConfig(c.Config)
	return err
}

// discovered asks an API server what it serves, and keeps of what it said nothing.
type discovered struct {
	*discovery.DiscoveryClient
	silent error
}

// ServerGroupsAndResourcesWithContext overrides that of the client: those who ask it go on
// with what was answered.
func (d *discovered) ServerGroupsAndResourcesWithContext(ctx context.Context) ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	groups, lists, err := d.DiscoveryClient.ServerGroupsAndResourcesWithContext(ctx)
	d.silent = err
	return groups, lists, err
}

// silentOfPolicies is an error where nothing was said of a group that has policies: it
// would be taken for one that is not installed.
func (d *discovered) silentOfPolicies() error {
	failed, _ := discovery.GroupDiscoveryFailedErrorGroups(d.silent)
	for version, why := range failed {
		for _, kind := range SourceKinds() {
			if kind[0] == version.Group {
				return fmt.Errorf("it does not say what it serves of %s: %w", version, why)
			}
		}
	}
	return nil
}

// Serves is the resource of a kind in the first of the versions that is served.
func (c *Connection) Serves(group, kind string, versions ...string) (apischema.GroupVersionResource, bool) {
	for _, v := range versions {
		if m, err := c.Mapper.RESTMapping(apischema.GroupKind{Group: group, Kind: kind}, v); err == nil {
			return m.Resource, true
		}
	}
	return apischema.GroupVersionResource{}, false
}

// PageSize is how many objects are asked for at once.
const PageSize = 500

// List reads all objects of a resource, in all namespaces, and the version of the
// List from which a watch can go on.
func (c *Connection) List(ctx context.Context, resource apischema.GroupVersionResource) (all []unstructured.Unstructured, version string, err error) {
	options := metav1.ListOptions{Limit: PageSize}
	for {
		page, err := c.Dynamic.Resource(resource).List(ctx, options)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", resource.GroupResource(), err)
		}
		all = append(all, page.Items...)
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return all, page.GetResourceVersion(), nil
		}
	}
}
