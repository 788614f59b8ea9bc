// Where the page looks: the cluster, with the ways to others, and the namespace.

import { values } from "../list/filters";
import { useListing } from "../list/store";
import type { Cluster } from "../login";
import { type Route, go, useLocation } from "../route";
import { Command, Copy } from "./copy";
import { useMenu } from "./dialog";
import { Icon } from "./icons";
import { chosen } from "./namespaces";

/** The name of a cluster that people know it by: that of its context, else where its API server is. */
export function nameOf({ name, cluster }: Pick<Cluster, "name" | "cluster">): string {
  return name || cluster.replace(/^https?:\/\//, "").replace(/\/$/, "") || "this cluster";
}

export function Where({ cluster, route, namespace }: { cluster: Cluster; route: Route; namespace: string }) {
  return (
    <div class="where">
      <ClusterMenu of={cluster} />
      {cluster.namespace ? (
        <span class="only" title={`This page shows the namespace ${cluster.namespace} alone`}>
          {cluster.namespace}
        </span>
      ) : (
        <Namespaces route={route} namespace={namespace} />
      )}
    </div>
  );
}

function ClusterMenu({ of: cluster }: { of: Cluster }) {
  const { menu } = useMenu();
  return (
    <details class="menu" ref={menu}>
      <summary aria-label={`Cluster ${nameOf(cluster)}`}>
        <span>{nameOf(cluster)}</span>
        <Icon of="down" />
      </summary>
      <div class="panel">
        <h2>{nameOf(cluster)}</h2>
        {cluster.cluster && (
          <p class="copied">
            <code>{cluster.cluster}</code>
            <Copy text={cluster.cluster} what="the address of the cluster" />
          </p>
        )}
        {cluster.namespace && <p>This page shows the namespace {cluster.namespace} alone.</p>}
        {cluster.login === "address" && <OtherClusters of={cluster.others} />}
      </div>
    </details>
  );
}

/** Each cluster has a dashboard of its own, with the rights of its context: this one has no credentials for others. */
function OtherClusters({ of }: { of: Cluster["others"] }) {
  return (
    <>
      <p>Another cluster has a page of its own:</p>
      {of.length === 0 && <Command>trainer dashboard --kubeconfig FILE</Command>}
      <ul class="others">
        {of.map(({ name, command }) => (
          <li key={name}>
            <Command>{command}</Command>
          </li>
        ))}
      </ul>
    </>
  );
}

function Namespaces({ route, namespace }: { route: Route; namespace: string }) {
  const { rows } = useListing();
  const { path, query } = useLocation();
  return (
    <select
      aria-label="Namespace"
      value={namespace}
      onChange={(event) => {
        const address = chosen(route, path, query, event.currentTarget.value);
        go(address, address.startsWith(`${path}?`) || address === path ? "replace" : "push");
      }}
    >
      <option value="">All namespaces</option>
      {values(rows.values(), "namespace", namespace).map((each) => (
        <option key={each} value={each}>
          {each}
        </option>
      ))}
    </select>
  );
}
