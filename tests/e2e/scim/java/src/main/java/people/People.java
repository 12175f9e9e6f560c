package people;

import com.unboundid.scim2.client.ScimService;
import com.unboundid.scim2.common.exceptions.ResourceNotFoundException;
import com.unboundid.scim2.common.types.Email;
import com.unboundid.scim2.common.types.Name;
import com.unboundid.scim2.common.types.UserResource;
import jakarta.ws.rs.client.Client;
import jakarta.ws.rs.client.ClientBuilder;
import jakarta.ws.rs.client.ClientRequestFilter;
import org.glassfish.jersey.apache.connector.ApacheConnectorProvider;
import org.glassfish.jersey.client.ClientConfig;
import org.glassfish.jersey.client.ClientProperties;
import org.glassfish.jersey.client.RequestEntityProcessing;

/** Somebody comes, changes and leaves. Arguments: the address of SCIM, and an access token. */
public class People {
    public static void main(String[] arguments) throws Exception {
        ClientRequestFilter bearer =
            request -> request.getHeaders().putSingle("Authorization", "Bearer " + arguments[1]);
        // A body in chunks gets 411.
        ClientConfig config = new ClientConfig()
            .connectorProvider(new ApacheConnectorProvider())
            .property(ClientProperties.REQUEST_ENTITY_PROCESSING, RequestEntityProcessing.BUFFERED);
        Client client = ClientBuilder.newClient(config).register(bearer);
        ScimService scim = new ScimService(client.target(arguments[0]));

        UserResource wanted = new UserResource();
        wanted.setUserName("frida");
        wanted.setName(new Name().setGivenName("Frida").setFamilyName("Fuchs"));
        wanted.setEmails(new Email().setValue("frida@example.com").setType("work").setPrimary(true));
        UserResource frida = scim.create("Users", wanted);

        String filter = "userName eq \"frida\"";
        var found = scim.searchRequest("Users").filter(filter).invoke(UserResource.class);
        expect(found.getTotalResults() == 1, "found by name");
        expect(found.getResources().get(0).getId().equals(frida.getId()), "the same");

        frida.setDisplayName("Frida Fuchs");
        frida = scim.replace(frida);
        expect("Frida Fuchs".equals(frida.getDisplayName()), "replaced");

        frida = scim.modifyRequest("Users", frida.getId())
            .replaceValue("active", false)
            .invoke(UserResource.class);
        expect(!frida.getActive(), "deactivated");

        scim.delete("Users", frida.getId());
        try {
            scim.retrieve("Users", frida.getId(), UserResource.class);
            expect(false, "gone");
        } catch (ResourceNotFoundException gone) {
            System.out.println("done");
        }
    }

    private static void expect(boolean holds, String what) {
        if (!holds) throw new IllegalStateException(what);
    }
}
