"""What is drawn of a trajectory is where its bodies are, of the world that was asked for."""

import dataclasses
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim as js
from jaxsim.view.trajectory import animation, contact_forces, one_world

STEPS = 4


@pytest.fixture(scope="module")
def rolled():
    """Two worlds: a heavy cube, whose centre of mass is off its root, at rest on a plane; with a wall beside it."""
    scene = js.Scene()
    scene.add_plane(normal=(0, 0, 2), offset=-0.1, name="floor")
    scene.add_rigid(js.Box((0.1, 0.4, 0.2)), position=(1, 0, 0), static=True, name="wall")
    scene.add_rigid(
        js.Box((0.1, 0.1, 0.1)),
        mass=5.0,
        center_of_mass=(0, 0, -0.05),
        moment_of_inertia=(0.05, 0, 0, 0.05, 0, 0.05),
        position=(0, 0, 0.001),
        name="cube",
    )
    model, state = scene.build()
    states = jax.tree.map(lambda x: jnp.stack([x, x]), state)
    states = jax.vmap(lambda s, x: js.set_pose(model, s, "cube", position=jnp.array([0, 0, 0.001]).at[0].set(x)))(
        states, jnp.array([0.0, 0.5])
    )
    heavy = js.replace(model, "cube", mass=10.0)
    models = js.replace(model, "cube", mass=5.0)
    models = jax.tree.map(lambda a, b: jnp.stack([a, b]), models, heavy)
    axes = jax.tree.map(lambda x: 0, models)
    return js.rollout_batch(models, states, None, 5e-3, steps=STEPS, model_axes=axes)[1]


@pytest.fixture(scope="module")
def single(rolled):
    return one_world(rolled, 0)


def test_poses_are_those_of_the_roots(rolled, single):
    drawn = animation(single)
    assert [m.name for m in drawn.meshes] == ["wall", "cube"]
    np.testing.assert_allclose(drawn.times, 5e-3 * np.arange(STEPS + 1))
    np.testing.assert_allclose(drawn.positions[0], [[1, 0, 0], [0, 0, 0.001]], atol=1e-12)
    for row in range(STEPS + 1):
        expected = js.pose(single.model, single.state(row), "cube")
        np.testing.assert_allclose(drawn.positions[row, 1], expected.position, atol=1e-12)
        np.testing.assert_allclose(drawn.quaternions[row, 1], expected.quaternion, atol=1e-12)
    np.testing.assert_allclose(np.ptp(drawn.meshes[0].vertices, axis=0), [0.2, 0.8, 0.4])
    np.testing.assert_allclose(animation(rolled, world=1).positions[0, 1], [0.5, 0, 0.001], atol=1e-12)


def test_a_plane_stands_where_its_pose_puts_it(single):
    (plane,) = animation(single).planes
    np.testing.assert_allclose(plane.normal, [0, 0, 1])
    assert plane.offset == pytest.approx(-0.1)
    turned = js.rotation.multiply(jnp.array([0.5, 0.5, 0.5, 0.5]), jnp.array([0.0, 0.0, 0.0, 1.0]))  # z to x
    moved = jax.vmap(
        lambda s: js.set_pose(single.model, s, "floor", position=jnp.array([3.0, 1.0, 2.0]), quaternion=turned)
    )(single.states)
    (plane,) = animation(dataclasses.replace(single, rows=moved)).planes
    np.testing.assert_allclose(plane.normal, [1, 0, 0], atol=1e-12)
    assert plane.offset == pytest.approx(2.9)


@pytest.mark.parametrize("gravity, up", [((0, -9.81, 0), (0, 1, 0)), ((0, 0, 0), (0, 0, 1))])
def test_up_is_against_gravity(single, gravity, up):
    model = js.replace(single.model, gravity=gravity)
    np.testing.assert_allclose(animation(dataclasses.replace(single, model=model)).up, up)


def test_forces_are_those_of_contact_force(rolled):
    own = one_world(rolled, 1)
    forces = contact_forces(own)
    expected = js.contact_force(own.model, own.report(2), "cube").force
    assert np.linalg.norm(expected) > 1.0
    np.testing.assert_allclose(forces[2, 0], expected, rtol=1e-12, atol=1e-10)
    arrows = animation(rolled, forces=True, world=1).arrows
    assert arrows.shape == (STEPS + 1, 1, 6)
    np.testing.assert_allclose(arrows[3, 0, 3:], forces[2, 0])
    np.testing.assert_allclose(arrows[3, 0, :3], own.states.q[3, :3])
    assert not arrows[0, :, 3:].any()


@pytest.mark.parametrize("world", [-1, 2, 0.5])
def test_worlds_that_are_not_there_are_refused(rolled, world):
    with pytest.raises(ValueError, match="from 0 to 1"):
        animation(rolled, world=world)


def test_observations_cannot_be_drawn(single):
    observed = dataclasses.replace(single, observed=True)
    for draw in (observed.plot, observed.to_html, observed.show):
        with pytest.raises(ValueError, match="recorded observations"):
            draw()


def test_a_world_without_dynamic_bodies(single):
    scene = js.Scene()
    scene.add_rigid(js.Sphere(0.1), static=True)
    model, state = scene.build()
    still = js.rollout(model, state, None, 1e-3, steps=2)[1]
    assert animation(still, forces=True).arrows.shape == (3, 0, 6)
    with pytest.raises(ValueError, match="no dynamic body"):
        still.plot()


def test_the_page_has_one_mesh_per_body_and_no_address(single, tmp_path):
    pytest.importorskip("viser", reason='viser is missing: pip install "jaxsim-contact[viz]"')
    page = single.to_html(tmp_path / "page.html", title="A <cube>", forces=True)
    assert (tmp_path / "page.html").read_text() == page
    assert "<title>A &lt;cube&gt;</title>" in page
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", page)
    assert "4 steps of 0.005 s" in single.to_html()
    with pytest.raises(FileNotFoundError, match="missing does not exist"):
        single.to_html(tmp_path / "missing" / "page.html")


def test_the_recorded_scene_holds_every_body(single):
    pytest.importorskip("viser", reason='viser is missing: pip install "jaxsim-contact[viz]"')
    import viser

    names, add = [], viser.SceneApi.add_mesh_simple
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            viser.SceneApi,
            "add_mesh_simple",
            lambda self, name, *a, **k: names.append(name) or add(self, name, *a, **k),
        )
        single.to_html()
    assert [n.split(" ", 1)[1] for n in names] == ["wall", "cube"]


def test_plots_name_quantity_unit_and_body(rolled, single, tmp_path):
    pytest.importorskip("matplotlib", reason='matplotlib is missing: pip install "jaxsim-contact[viz]"')
    axes = rolled.plot(world=0)
    labels = [[ax.get_ylabel() for ax in row] for row in axes]
    assert labels == [
        ["x of COM [m]", "speed of COM [m/s]"],
        ["y of COM [m]", "angular speed [rad/s]"],
        ["z of COM [m]", "contact force [N]"],
    ]
    assert [ax.get_xlabel() for ax in axes[-1]] == ["time [s]"] * 2
    assert [t.get_text() for t in axes[0, 0].figure.legends[0].get_texts()] == ["cube"]
    force = axes[2, 1].lines[0]
    np.testing.assert_allclose(force.get_ydata(), np.linalg.norm(contact_forces(single)[:, 0], axis=-1))
    np.testing.assert_allclose(force.get_xdata(), 5e-3 * np.arange(1, STEPS + 1))


def test_trouble_shows(single):
    pytest.importorskip("matplotlib", reason='matplotlib is missing: pip install "jaxsim-contact[viz]"')
    from matplotlib.figure import Figure

    summaries = single.summaries
    lost = dataclasses.replace(
        summaries,
        status=summaries.status.at[1].set(js.Status.DIVERGED),
        body_status=summaries.body_status.at[1].set(js.Status.DIVERGED),
    )
    figure = Figure()
    axes = dataclasses.replace(single, summaries=lost).plot(figure=figure)
    assert axes[0, 0].figure is figure
    assert "1 diverged" in figure.get_suptitle()
    assert np.isnan(axes[2, 1].lines[0].get_ydata()).tolist() == [False, True, False, False]


def test_nothing_that_draws_is_imported_before_it_is_needed():
    code = "import sys, jaxsim; assert not {'viser', 'matplotlib', 'trimesh', 'IPython'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
